"""ShareGroupHeartbeat for the decider and its result, independent of protocol versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from ottla.groups.consumer.assignors.spec import Partitions
from ottla.groups.share.member import JOIN_EPOCH, LEAVE_EPOCH
from ottla.protocol.errors import ApiError, ErrorCode

MAX_MEMBER_ID_LENGTH: Final = 36
"""Of a UUID as text, which clients make."""


class HeartbeatRequest(NamedTuple):
    """What a member says; None where nothing has changed."""

    group: str
    member_id: str
    """The client makes it."""
    epoch: int
    """JOIN_EPOCH, LEAVE_EPOCH or the one that it is in."""
    client_id: str
    client_host: str
    rack_id: str | None = None
    subscribed_topics: frozenset[str] | None = None


class StatesToInitialize(NamedTuple):
    """Partitions of which the share coordinator is to begin a group's state."""

    epoch: int
    """The state's epoch: that of the group."""
    offsets: Mapping[UUID, Mapping[int, int]]
    """By topic and partition where to begin; NO_OFFSET: where the group's settings say."""


NO_OFFSET: Final = -1


class HeartbeatResult(NamedTuple):
    """The answer to a HeartbeatRequest that is not refused."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    assignment: Partitions | None = None
    """What the member reads from now on; None: as before."""
    to_initialize: StatesToInitialize | None = None
    """What to ask the share coordinator for once the step is committed."""


def check(request: HeartbeatRequest) -> None:
    """Raises ApiError (INVALID_REQUEST) for a request that says too little, or what cannot be."""
    if not 0 < len(request.member_id) <= MAX_MEMBER_ID_LENGTH:
        raise _invalid("Invalid member id in the request.")
    for name, text in (
        ("MemberId", request.member_id),
        ("GroupId", request.group),
        ("RackId", request.rack_id),
    ):
        if text is not None and not text.strip():
            raise _invalid(f"{name} can't be empty.")
    if request.epoch == JOIN_EPOCH:
        if not request.subscribed_topics:
            raise _invalid("SubscribedTopicNames must be set in first request.")
    elif request.epoch < LEAVE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, message)
