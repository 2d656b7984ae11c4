"""The share groups of this broker (KIP-932): finds a request's shard and waits for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.groups.shard import GroupShard
from ottla.groups.share.describe import DescribedShareGroup
from ottla.groups.share.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.step import Step
from ottla.protocol.errors import ApiError, ErrorCode

T = TypeVar("T")


class ShareGroups:
    """For the event loop's thread only. Every method raises ApiError."""

    def __init__(
        self, runtime: CoordinatorRuntime[GroupShard], partition_for: Callable[[str], int]
    ) -> None:
        self._runtime = runtime
        self._partition_for = partition_for

    async def _decide(self, group: str, decide: Callable[[GroupShard, Step], T]) -> T:
        return await self._runtime.decide(self._partition_for(group), decide)

    async def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResult:
        """ShareGroupHeartbeat."""
        return await self._decide(request.group, partial(_heartbeat, request))

    async def describe(self, group: str) -> DescribedShareGroup:
        """ShareGroupDescribe of one group (GROUP_ID_NOT_FOUND)."""
        if not group:
            raise ApiError(ErrorCode.invalid_group_id)
        return await self._decide(group, lambda shard, step: shard.describe_share_group(group))


def _heartbeat(request: HeartbeatRequest, shard: GroupShard, step: Step) -> HeartbeatResult:
    return shard.share_heartbeat(request, step)
