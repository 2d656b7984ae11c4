"""Decisions about share groups: most are made at once, those of very large groups in a thread.

The latter take turns within a group; what was decided is done only if the group has not changed
meanwhile (`ottla.groups.share.aside`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TypeVar
from uuid import UUID
from weakref import WeakValueDictionary

from ottla.coordinator.consumer_decisions import RunLong
from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.groups.consumer.topics import Topics
from ottla.groups.shard import GroupShard
from ottla.groups.share.aside import Aside, Copied
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.heartbeat import heartbeat
from ottla.groups.share.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.share.shard import states_answered
from ottla.groups.share.step import Step as ShareStep
from ottla.groups.step import Step

T = TypeVar("T")


class ShareDecisions:
    """For the event loop's thread only. Every method raises ApiError."""

    def __init__(self, runtime: CoordinatorRuntime[GroupShard], run_long: RunLong) -> None:
        self._runtime = runtime
        self._run_long = run_long
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Of the groups for which a thread decides, by name."""

    async def heartbeat(self, index: int, request: HeartbeatRequest) -> HeartbeatResult:
        """In the partition `index` of `__consumer_offsets`."""
        begin = partial(_heartbeat, request)
        decided = await self._runtime.decide(index, begin)
        if not isinstance(decided, Aside):
            return decided

        def work(group: ShareGroup, topics: Topics, step: ShareStep) -> HeartbeatResult:
            return heartbeat(group, request, topics, step)

        return await self._decide(index, request.group, begin, work)

    async def states_answered(
        self,
        index: int,
        group_id: str,
        begun: Mapping[UUID, Collection[int]],
        refused: Mapping[UUID, Collection[int]],
    ) -> None:
        """The share coordinators have begun the states of some partitions, and not of others."""

        def work(group: ShareGroup, topics: Topics, step: ShareStep) -> None:
            states_answered(group, begun, refused, step)

        begin = partial(_answered, group_id, begun, refused)
        if await self._runtime.decide(index, begin) is not None:
            await self._decide(index, group_id, begin, work)

    async def _decide(
        self,
        index: int,
        group: str,
        begin: Callable[[GroupShard, Step], Aside | T],
        work: Callable[[ShareGroup, Topics, ShareStep], T],
    ) -> T:
        """`begin` may also have the result at once, as the group is not that large any more.

        What changes a large group waits for the others here, so what changes it meanwhile is
        members whose sessions expire, and administrators while it has none: there are only so many
        until one of these is taken over.
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


def _heartbeat(request: HeartbeatRequest, shard: GroupShard, step: Step) -> HeartbeatResult | Aside:
    return shard.share_heartbeat(request, step)


def _answered(
    group: str,
    begun: Mapping[UUID, Collection[int]],
    refused: Mapping[UUID, Collection[int]],
    shard: GroupShard,
    step: Step,
) -> Aside | None:
    return shard.share_states_answered(group, begun, refused, step)


def _take_over(
    copied: Copied, encoded: list[tuple[bytes, bytes | None]], shard: GroupShard, step: Step
) -> bool:
    return shard.take_over_share(copied, encoded, step)
