"""Decisions about very large groups: made in a thread, on a copy (`ottla.groups.aside`).

They take turns within a group; what was decided is done only if the group has not changed
meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.groups.aside import Aside, Copied, G, S
from ottla.groups.consumer.topics import Topics
from ottla.groups.shard import GroupShard
from ottla.groups.step import Step

T = TypeVar("T")

RunLong: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs something in a thread and returns its result."""
Encoded: TypeAlias = list[tuple[bytes, bytes | None]]


async def run_at_once(work: Callable[[], Any]) -> Any:
    """Without a thread."""
    return work()


class LongDecisions(Generic[G, S]):
    """Of groups of one type. For the event loop's thread only."""

    def __init__(
        self,
        runtime: CoordinatorRuntime[GroupShard],
        run_long: RunLong,
        take_over: Callable[[GroupShard, Copied[G, S], Encoded, Step], bool],
    ) -> None:
        """`take_over` does what was decided; False if the group has changed meanwhile."""
        self._runtime = runtime
        self._run_long = run_long
        self._take_over = take_over
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Of the groups for which a thread decides, by name."""

    async def decide(
        self,
        index: int,
        group: str,
        begin: Callable[[GroupShard, Step], Aside[G, S] | T],
        work: Callable[[G, Topics, S], T],
    ) -> T:
        """In the partition `index` of `__consumer_offsets`; raises ApiError. `begin` may also have
        the result at once, as the group is not that large any more.

        What changes a large group waits for the others here, so what changes it meanwhile is
        members that leave or whose sessions expire, and a topic that is deleted: there are only so
        many until one of these is taken over.
        """
        lock = self._locks.setdefault(group, asyncio.Lock())
        async with lock:
            while True:
                aside = await self._runtime.decide(index, begin)
                if not isinstance(aside, Aside):
                    return aside
                copied = aside.copied()
                result, encoded = await self._run_long(partial(copied.decide, work))
                if await self._runtime.decide(index, partial(self._done, copied, encoded)):
                    made: T = result
                    return made

    def _done(self, copied: Copied[G, S], encoded: Encoded, shard: GroupShard, step: Step) -> bool:
        return self._take_over(shard, copied, encoded, step)
