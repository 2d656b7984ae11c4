"""A random life of two partitions whose keys one pipeline brings into one table: a key may be in
both, and rows are ordered by time, or by a column of the value.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Final

from tests.journey.model.stored import Sink, Stored
from tests.journey.model.stored_life import AtOnce
from tests.journey.model.stored_statements import check

from ottla.log.config import LogConfig

LENGTH: Final = 30
SHARED: Final = (b"both", b"two")
OWN: Final = ((b"left",), (b"right",))
WEIGHTS: Final = {
    "tick": 4, "append": 14, "roll": 3, "clean": 2, "delete": 2, "deliver": 6, "ask": 4,
}  # fmt: skip


class SplitLife:
    """What happens next is drawn from the seed."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random = Random(seed)
        is_compacted = random.random() < 0.3
        config = LogConfig(
            segment_bytes=random.choice((300, 1 << 20)),
            cleanup_delete=not is_compacted,
            cleanup_compact=is_compacted,
            delete_retention_ms=0,
            min_cleanable_dirty_ratio=0.0,
        )
        sink = Sink(
            random.choice(("upsert", "upsert", "history")),
            random.choice(("timestamp", "timestamp", "column")),
            random.choice(("skip", "remove", "mark")),
            reads_committed=True,
        )
        first = Stored(folder, config, sink)
        self.worlds = [first, Stored(folder, config, sink, 1, [first])]
        self.batch = 0

    async def run(self) -> None:
        for _ in range(LENGTH):
            (name,) = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))
            await getattr(self, name)()
        await self.deliver()
        for world in self.worlds:
            for offset in range(world.log.end_offset + 1):
                await check(world, offset)
            await world.recorder.close()

    async def tick(self) -> None:
        self.worlds[0].clock.ms += self.random.choice((1, 50, 2000))

    async def append(self) -> None:
        world = self.random.choice(self.worlds)
        keys = OWN[world.partition] * 2 + SHARED[: self.random.choice((0, 1, 2))]
        count = self.random.randint(1, 3)
        self.worlds[0].clock.ms += 1
        world.append([(self.random.choice(keys), self.random.random() < 0.2) for _ in range(count)])
        world.raise_high(world.log.end_offset)

    async def roll(self) -> None:
        world = self.random.choice(self.worlds)
        world.log.roll(world.clock.ms)

    async def clean(self) -> None:
        for world in self.worlds:
            if world.log.config.cleanup_compact:
                world.clean()

    async def delete(self) -> None:
        world = self.random.choice(self.worlds)
        if world.high > world.log.start_offset:
            world.delete_before(self.random.randint(world.log.start_offset, world.high))

    async def deliver(self) -> None:
        """One batch of both partitions."""
        spans = [world.next_batch() for world in self.worlds]
        if all(begin == end for begin, end in spans):
            return
        read = []
        for world, (begin, end) in zip(self.worlds, spans, strict=True):
            reject = {at for at in range(begin, end) if self.random.random() < 0.05}
            if begin < end:
                read += world.read_batch(self.batch, begin, end, reject)
        self.worlds[0].table.merge(self.batch, read)
        self.batch += 1

    async def ask(self) -> None:
        world = self.random.choice(self.worlds)
        await check(world, self.random.randint(0, world.log.end_offset))


def live_split(seed: int, folder: Path) -> None:
    """A whole life. Raises UntrueError for a journey that said what is not true."""
    own = folder / str(seed)
    own.mkdir()

    async def life() -> None:
        asyncio.get_running_loop().set_default_executor(AtOnce())
        await SplitLife(seed, own).run()

    asyncio.run(life())
