"""Decisions about share groups: at once, or in a thread for very large ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.long_decisions import LongDecisions, RunLong
from ottla.groups.aside import Aside
from ottla.groups.consumer.topics import Topics
from ottla.groups.shard import GroupShard
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.heartbeat import heartbeat
from ottla.groups.share.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.share.step import Step as ShareStep
from ottla.groups.step import Step

T = TypeVar("T")


class ShareDecisions:
    """For the event loop's thread only. Every method raises ApiError."""

    def __init__(self, runtime: CoordinatorRuntime[GroupShard], run_long: RunLong) -> None:
        self._runtime = runtime
        self._long = LongDecisions[ShareGroup, ShareStep](
            runtime, run_long, GroupShard.take_over_share
        )

    async def heartbeat(self, index: int, request: HeartbeatRequest) -> HeartbeatResult:
        """In the partition `index` of `__consumer_offsets`."""
        begin = partial(_heartbeat, request)
        decided = await self._runtime.decide(index, begin)
        if not isinstance(decided, Aside):
            return decided

        def work(group: ShareGroup, topics: Topics, step: ShareStep) -> HeartbeatResult:
            return heartbeat(group, request, topics, step)

        return await self._long.decide(index, request.group, begin, work)

    async def change(
        self,
        index: int,
        group: str,
        work: Callable[[ShareGroup, Topics, ShareStep], T],
        *,
        more: int = 0,
        may_be_new: bool = False,
    ) -> T:
        """What administrators and share coordinators change, `work` of
        `ottla.groups.share.administration`; `more` partitions are named in it.
        """

        def begin(shard: GroupShard, step: Step) -> T | Aside[ShareGroup, ShareStep]:
            return shard.share_change(group, work, step, more=more, may_be_new=may_be_new)

        decided = await self._runtime.decide(index, begin)
        if not isinstance(decided, Aside):
            return decided
        return await self._long.decide(index, group, begin, work)


def _heartbeat(
    request: HeartbeatRequest, shard: GroupShard, step: Step
) -> HeartbeatResult | Aside[ShareGroup, ShareStep]:
    return shard.share_heartbeat(request, step)
