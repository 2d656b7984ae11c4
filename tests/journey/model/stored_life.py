"""A random life of a partition with a real log: transactions, compaction, and a pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, Final, TypeVar

from tests.journey.model.stored import Sink, Stored
from tests.journey.model.stored_statements import CleaningSaid, check, what_cleaning_may_do

from ottla.log.config import LogConfig
from ottla.protocol.errors import ApiError
from ottla.records.control import ControlType

T = TypeVar("T")
LENGTH: Final = 45
KEYS: Final = (b"a", b"b", b"c", b"d")
PRODUCERS: Final = (7, 8)
IDEMPOTENT: Final = 9
OFFSETS_ASKED: Final = 3
WEIGHTS: Final = {
    "tick": 4, "append": 12, "append_in_transaction": 6, "end": 6, "raise_high": 8, "roll": 3,
    "clean": 3, "delete": 0.4, "deliver": 4, "ask": 2,
}  # fmt: skip


class StoredLife:
    """What happens next is drawn from the seed."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random = Random(seed)
        is_compacted = random.random() < 0.75
        config = LogConfig(
            segment_bytes=random.choice((300, 600, 1 << 20)),
            cleanup_delete=not is_compacted,
            cleanup_compact=is_compacted,
            min_compaction_lag_ms=random.choice((0, 0, 5000)),
            delete_retention_ms=random.choice((0, 3000, 60_000)),
            min_cleanable_dirty_ratio=0.0,
        )
        sink = Sink(
            Random(f"{seed} rows").choice(("upsert", "upsert", "history")),
            random.choice(("offset", "timestamp")),
            random.choice(("skip", "remove", "mark")),
            reads_committed=random.random() < 0.7,
        )
        self.world = Stored(folder, config, sink)
        self.did: list[str] = []

    async def run(self) -> None:
        for _ in range(LENGTH):
            (name,) = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))
            self.did.append(name)
            await getattr(self, name)()
        await self.deliver()
        for offset in range(self.world.log.end_offset + 1):
            await check(self.world, offset)
        await self.world.recorder.close()

    async def tick(self) -> None:
        self.world.clock.ms += self.random.choice((1, 50, 2000, 10_000))

    def _some(self) -> list[tuple[bytes | None, bool]]:
        count = self.random.randint(1, 3)
        keys = [
            None if self.random.random() < 0.07 else self.random.choice(KEYS) for _ in range(count)
        ]
        return [(key, key is not None and self.random.random() < 0.2) for key in keys]

    async def append(self) -> None:
        """By a producer without an id, or by an idempotent one."""
        if self.world.log.end_offset % 2:
            self.world.append(self._some(), IDEMPOTENT, is_plain=True)
        else:
            self.world.append(self._some())

    async def append_in_transaction(self) -> None:
        self.world.append(self._some(), self.random.choice(PRODUCERS))

    async def end(self) -> None:
        if self.world.open:
            outcome = self.random.choice((ControlType.commit, ControlType.abort))
            self.world.end(self.random.choice(list(self.world.open)), outcome)

    async def raise_high(self) -> None:
        ends = [0, *self.world.ends]  # replicas have whole batches
        self.world.raise_high(ends[-1] if self.random.random() < 0.7 else self.random.choice(ends))

    async def roll(self) -> None:
        self.world.log.roll(self.world.clock.ms)

    async def clean(self) -> None:
        """What it removes is what the journeys before said that it may remove."""
        said = CleaningSaid(self.world, await what_cleaning_may_do(self.world))
        said.check(self.world.log.config.cleanup_compact and self.world.clean())

    async def delete(self) -> None:
        world = self.world
        if world.high > world.log.start_offset:
            world.delete_before(self.random.randint(world.log.start_offset, world.high))

    async def deliver(self) -> None:
        end = self.world.log.end_offset
        reject = {offset for offset in range(end) if self.random.random() < 0.1}
        self.world.deliver(reject)

    async def ask(self) -> None:
        for _ in range(OFFSETS_ASKED):
            await check(self.world, self.random.randint(0, self.world.log.end_offset))


class AtOnce(ThreadPoolExecutor):
    """Does the work of threads in the loop: a life has thousands of small reads."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except (ApiError, OSError) as error:
            future.set_exception(error)
        return future


def live_stored(seed: int, folder: Path) -> None:
    """A whole life. Raises UntrueError for a journey that said what is not true."""
    own = folder / str(seed)
    own.mkdir()

    async def life() -> None:
        asyncio.get_running_loop().set_default_executor(AtOnce())
        await StoredLife(seed, own).run()

    asyncio.run(life())
