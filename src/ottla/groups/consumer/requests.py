"""ConsumerGroupHeartbeat for the decider and its result, independent of protocol versions."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.groups.consumer.assignors.spec import Partitions
from ottla.groups.consumer.member import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from ottla.groups.consumer.settings import ASSIGNORS
from ottla.protocol.errors import ApiError, ErrorCode

NOT_GIVEN: Final = -1
"""A rebalance timeout that has not changed."""
MAX_SUBSCRIBED_TOPICS: Final = 10_000
"""Names of one member. More would not fit into its record, unless they are short."""


class HeartbeatRequest(NamedTuple):
    """What a member says; None (or NOT_GIVEN) where nothing has changed."""

    group: str
    member_id: str
    """With version 1 the client makes it; with version 0 it is empty at first."""
    epoch: int
    """JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH or the one that it is in."""
    client_id: str
    client_host: str
    new_member_id: str = ""
    """The id it gets if it has none. Made outside: deciders have no random numbers."""
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NOT_GIVEN
    subscribed_topics: frozenset[str] | None = None
    subscribed_regex: str | None = None
    server_assignor: str | None = None
    owned: Partitions | None = None

    @property
    def is_full(self) -> bool:
        """The member says everything, as it does after an error: so it gets everything."""
        return self.epoch == JOIN_EPOCH or (
            self.rebalance_timeout_ms != NOT_GIVEN
            and (self.subscribed_topics is not None or self.subscribed_regex is not None)
            and self.owned is not None
        )


class HeartbeatResult(NamedTuple):
    """The answer to a HeartbeatRequest that is not refused."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    assignment: Partitions | None = None
    """What the member may read from now on; None: as before."""
    due_regexes: tuple[str, ...] = ()
    """Of the group: to be matched against the topics now."""


def check(request: HeartbeatRequest, version: int) -> None:
    """Raises ApiError for a request that says too little, or what cannot be."""
    if (
        version >= 1 or request.epoch > 0 or request.epoch == LEAVE_EPOCH
    ) and not request.member_id:
        raise _invalid("MemberId can't be empty.")
    for name, text in (
        ("GroupId", request.group),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if text is not None and not text.strip():
            raise _invalid(f"{name} can't be empty.")
    if request.epoch == JOIN_EPOCH:
        _check_join(request)
    elif request.epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif request.epoch < LEAVE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in ASSIGNORS:
        raise ApiError(
            ErrorCode.unsupported_assignor,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: "
            f"{', '.join(ASSIGNORS)}.",
        )


def _check_join(request: HeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == NOT_GIVEN:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.owned is None or request.owned:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topics is None and request.subscribed_regex is None:
        raise _invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when"
            " (re-)joining."
        )


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, message)
