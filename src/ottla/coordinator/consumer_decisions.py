"""Decisions about consumer groups: most are made at once, those of very large groups in a thread.

The latter take turns within a group; what was decided is done only if the group has not changed
meanwhile (`ottla.groups.consumer.aside`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.groups.classic.requests import JoinRequest, JoinResult
from ottla.groups.classic_members import join_copied
from ottla.groups.consumer.aside import Aside, Copied
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.heartbeat import heartbeat
from ottla.groups.consumer.regexes import resolved
from ottla.groups.consumer.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.consumer.step import Step as ConsumerStep
from ottla.groups.consumer.topics import Topics
from ottla.groups.shard import GroupShard
from ottla.groups.step import Step
from ottla.protocol.errors import ErrorCode

RunLong: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs something in a thread and returns its result."""
T = TypeVar("T")


async def run_at_once(work: Callable[[], Any]) -> Any:
    """Without a thread."""
    return work()


class ConsumerDecisions:
    """For the event loop's thread only."""

    def __init__(self, runtime: CoordinatorRuntime[GroupShard], run_long: RunLong) -> None:
        self._runtime = runtime
        self._run_long = run_long
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Of the groups for which a thread decides, by name."""

    async def heartbeat(
        self, index: int, request: HeartbeatRequest, version: int
    ) -> HeartbeatResult:
        """In the partition `index` of `__consumer_offsets`; raises ApiError."""
        beat = partial(_heartbeat, request, version)
        decided = await self._runtime.decide(index, beat)
        if not isinstance(decided, Aside):
            return decided

        def work(group: ConsumerGroup, topics: Topics, step: ConsumerStep) -> HeartbeatResult:
            return heartbeat(group, request, topics, step)

        return await self._decide(index, request.group, beat, work)

    async def join(self, index: int, request: JoinRequest) -> JoinResult | None:
        """JoinGroup of a classic member of a very large group; None: not one. Raises ApiError."""

        def begin(shard: GroupShard, step: Step) -> Aside | JoinResult | None:
            return shard.join_aside(request, step)

        if await self._runtime.decide(index, begin) is None:
            return None
        work = partial(join_copied, request)
        result = await self._decide(index, request.group, begin, work)
        if result is not None and result.error is ErrorCode.none:
            done = partial(_has_joined, request.group, result.member_id)
            await self._runtime.decide(index, done)
        return result

    async def regexes_resolved(
        self, index: int, group: str, matched: Mapping[str, tuple[str, ...]], version: int
    ) -> None:
        """Regular expressions of the group were matched against the topics that had this version.
        Raises ApiError.
        """
        work = partial(resolved, matched, version)
        await self._decide(index, group, partial(_aside_of, group), work)

    async def _decide(
        self,
        index: int,
        group: str,
        begin: Callable[[GroupShard, Step], Aside | T],
        work: Callable[[ConsumerGroup, Topics, ConsumerStep], T],
    ) -> T:
        """`begin` may also have the result at once, as the group is not that large any more.

        Heartbeats that change a large group wait for each other here, so what changes it meanwhile
        is members that leave: there are only so many until one of these is taken over.
        """
        lock = self._locks.setdefault(group, asyncio.Lock())
        async with lock:
            while True:
                aside = await self._runtime.decide(index, begin)
                if not isinstance(aside, Aside):
                    return aside
                copied = aside.copied()
                result, encoded = await self._run_long(partial(copied.decide, work))
                done = partial(_take_over, copied, encoded)
                if await self._runtime.decide(index, done):
                    made: T = result
                    return made


def _heartbeat(
    request: HeartbeatRequest, version: int, shard: GroupShard, step: Step
) -> HeartbeatResult | Aside:
    return shard.consumer_heartbeat(request, version, step)


def _has_joined(group: str, member_id: str, shard: GroupShard, step: Step) -> None:
    shard.has_joined(group, member_id, step)


def _aside_of(group: str, shard: GroupShard, step: Step) -> Aside | None:
    return shard.aside_of(group, step)


def _take_over(
    copied: Copied, encoded: list[tuple[bytes, bytes | None]], shard: GroupShard, step: Step
) -> bool:
    return shard.take_over(copied, encoded, step)
