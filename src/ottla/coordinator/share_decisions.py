"""Decisions about share groups: at once, or in a thread for very large ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import TypeVar
from uuid import UUID

from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.long_decisions import LongDecisions, RunLong
from ottla.groups.aside import Aside
from ottla.groups.consumer.topics import Topics
from ottla.groups.shard import GroupShard
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
            await self._long.decide(index, group_id, begin, work)


def _heartbeat(
    request: HeartbeatRequest, shard: GroupShard, step: Step
) -> HeartbeatResult | Aside[ShareGroup, ShareStep]:
    return shard.share_heartbeat(request, step)


def _answered(
    group: str,
    begun: Mapping[UUID, Collection[int]],
    refused: Mapping[UUID, Collection[int]],
    shard: GroupShard,
    step: Step,
) -> Aside[ShareGroup, ShareStep] | None:
    return shard.share_states_answered(group, begun, refused, step)
