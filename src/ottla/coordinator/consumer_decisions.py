"""Decisions about consumer groups: at once, or in a thread for very large ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.long_decisions import LongDecisions, RunLong
from ottla.groups.aside import Aside
from ottla.groups.classic.requests import JoinRequest, JoinResult
from ottla.groups.classic_members import join_copied
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.heartbeat import heartbeat
from ottla.groups.consumer.regexes import resolved
from ottla.groups.consumer.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.consumer.step import Step as ConsumerStep
from ottla.groups.consumer.topics import Topics
from ottla.groups.shard import GroupShard
from ottla.groups.step import Step
from ottla.protocol.errors import ErrorCode


class ConsumerDecisions:
    """For the event loop's thread only."""

    def __init__(self, runtime: CoordinatorRuntime[GroupShard], run_long: RunLong) -> None:
        self._runtime = runtime
        self._long = LongDecisions[ConsumerGroup, ConsumerStep](
            runtime, run_long, GroupShard.take_over
        )

    async def heartbeat(
        self, index: int, request: HeartbeatRequest, version: int
    ) -> HeartbeatResult:
        """In the partition `index` of `__consumer_offsets`; raises ApiError."""
        beat = partial(_heartbeat, request, version)
        decided = await self._runtime.decide(index, beat, shares=True)
        if not isinstance(decided, Aside):
            return decided

        def work(group: ConsumerGroup, topics: Topics, step: ConsumerStep) -> HeartbeatResult:
            return heartbeat(group, request, topics, step)

        return await self._long.decide(index, request.group, beat, work)

    async def join(self, index: int, request: JoinRequest) -> JoinResult | None:
        """JoinGroup of a classic member of a very large group; None: not one. Raises ApiError."""

        def begin(
            shard: GroupShard, step: Step
        ) -> Aside[ConsumerGroup, ConsumerStep] | JoinResult | None:
            return shard.join_aside(request, step)

        if await self._runtime.decide(index, begin) is None:
            return None
        work = partial(join_copied, request)
        result = await self._long.decide(index, request.group, begin, work)
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
        await self._long.decide(index, group, partial(_aside_of, group), work)


def _heartbeat(
    request: HeartbeatRequest, version: int, shard: GroupShard, step: Step
) -> HeartbeatResult | Aside[ConsumerGroup, ConsumerStep]:
    return shard.consumer_heartbeat(request, version, step)


def _has_joined(group: str, member_id: str, shard: GroupShard, step: Step) -> None:
    shard.has_joined(group, member_id, step)


def _aside_of(
    group: str, shard: GroupShard, step: Step
) -> Aside[ConsumerGroup, ConsumerStep] | None:
    return shard.aside_of(group, step)
