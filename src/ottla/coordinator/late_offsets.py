"""Which groups have not come to certain offsets, of all whose offsets this broker keeps.

    count      how many groups there are: what all of it costs is groups x partitions
    late       the groups behind some offset, in parts of MAX_LOOKUPS_AT_ONCE; other work goes on
               between these

A partition of `__consumer_offsets` that does not answer in time is left out: it is being loaded, or
waits for a commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.groups.shard import GroupShard
from ottla.protocol.errors import ApiError
from ottla.runtime.slices import parts

T = TypeVar("T")

MAX_LOOKUPS_AT_ONCE: Final = 10_000
"""At 0.1 us each, and 2 us where a group is late."""
WITHIN_S: Final = 1.0
"""For the answer of one partition of `__consumer_offsets`."""

Ends: TypeAlias = Mapping[str, Mapping[int, int]]
"""By topic and partition: a group is late whose offset is smaller."""


class Late(NamedTuple):
    """A group's committed offset in one partition."""

    group: str
    topic: str
    partition: int
    offset: int


class LateOffsets:
    """Over all partitions of `__consumer_offsets` that this broker leads."""

    def __init__(self, runtime: CoordinatorRuntime[GroupShard]) -> None:
        self._runtime = runtime

    async def count(self) -> int:
        """How many groups have offsets."""
        found = 0
        for index in self._runtime.led_indexes():
            count = await self._ask(index, lambda shard, _: len(shard.offsets.groups()))
            found += count or 0
            await asyncio.sleep(0)
        return found

    async def late(self, ends: Ends) -> AsyncIterator[list[Late]]:
        """All of one group come in one part, in no order otherwise."""
        partitions = sum(map(len, ends.values()))
        groups_at_once = max(1, MAX_LOOKUPS_AT_ONCE // max(partitions, 1))
        for index in self._runtime.led_indexes():
            groups = await self._ask(index, lambda shard, _: shard.offsets.groups())
            for some in parts(groups or (), groups_at_once):
                found = await self._ask(index, partial(_late, ends, some))
                if found:
                    yield found
                await asyncio.sleep(0)

    async def _ask(self, index: int, ask: Callable[[GroupShard, Any], T]) -> T | None:
        """None: there is no answer."""
        try:
            async with asyncio.timeout(WITHIN_S):
                return await self._runtime.decide(index, ask)
        except (ApiError, TimeoutError):
            return None


def _late(ends: Ends, groups: Iterable[str], shard: GroupShard, _: Any) -> list[Late]:
    found = []
    for group in groups:
        topics = shard.offsets.of_group(group)
        for topic, its in ends.items():
            committed = topics.get(topic)
            if committed is None:
                continue
            for partition, end in its.items():
                value = committed.get(partition)
                if value is not None and value.offset < end:
                    found.append(Late(group, topic, partition, value.offset))
    return found
