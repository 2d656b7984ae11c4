"""Requests about streams groups (KIP-1071): decided at once, or in a thread for very large ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.long_decisions import LongDecisions, RunLong
from ottla.groups.aside import Aside
from ottla.groups.consumer.topics import Topics
from ottla.groups.history.events import STREAMS
from ottla.groups.shard import GroupShard
from ottla.groups.step import Step
from ottla.groups.streams.describe import DescribedStreamsGroup
from ottla.groups.streams.describe_topology import DescriptionUpdate
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.heartbeat import heartbeat
from ottla.groups.streams.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.streams.step import Step as StreamsStep
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.shards.encoding import fits_string


class StreamsGroups:
    """For the event loop's thread only. Every method raises ApiError."""

    def __init__(
        self,
        runtime: CoordinatorRuntime[GroupShard],
        partition_for: Callable[[str], int],
        run_long: RunLong,
        note_refused: Callable[[str, str, str, ErrorCode], None] = lambda *_: None,
    ) -> None:
        """`run_long` runs in a thread what takes long. `note_refused` gets group, its type, member
        and error of a heartbeat that is refused.
        """
        self._note_refused = note_refused
        self._runtime = runtime
        self._partition_for = partition_for
        self._long = LongDecisions[StreamsGroup, StreamsStep](
            runtime, run_long, GroupShard.take_over_streams
        )

    async def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResult:
        """StreamsGroupHeartbeat."""
        try:
            return await self._heartbeat(request)
        except ApiError as error:
            self._note_refused(request.group, STREAMS, request.member_id, error.code)
            raise

    async def _heartbeat(self, request: HeartbeatRequest) -> HeartbeatResult:
        named = (request.group, request.member_id, request.instance_id or "")
        if not all(map(fits_string, named)):
            raise ApiError(ErrorCode.invalid_request, "A name is longer than 32,767 bytes.")
        index = self._partition_for(request.group)
        begin = partial(_heartbeat, request)
        decided = await self._runtime.decide(index, begin)
        if not isinstance(decided, Aside):
            return decided

        def work(group: StreamsGroup, topics: Topics, step: StreamsStep) -> HeartbeatResult:
            made = heartbeat(group, request, topics, step)
            group.decided = made.soft
            return made.result

        return await self._long.decide(index, request.group, begin, work)

    async def describe_topology(self, update: DescriptionUpdate) -> str | None:
        """StreamsGroupTopologyDescriptionUpdate; returns why the description is not kept."""
        if not all(map(fits_string, (update.group, update.member_id))):
            raise ApiError(ErrorCode.invalid_request, "A name is longer than 32,767 bytes.")
        return await self._runtime.decide(
            self._partition_for(update.group),
            lambda shard, step: shard.describe_streams_topology(update, step),
        )

    async def describe(self, group: str) -> DescribedStreamsGroup:
        """StreamsGroupDescribe of one group (GROUP_ID_NOT_FOUND)."""
        if not group:
            raise ApiError(ErrorCode.invalid_group_id)
        return await self._runtime.decide(
            self._partition_for(group), lambda shard, step: shard.describe_streams_group(group)
        )


def _heartbeat(
    request: HeartbeatRequest, shard: GroupShard, step: Step
) -> HeartbeatResult | Aside[StreamsGroup, StreamsStep]:
    return shard.streams_heartbeat(request, step)
