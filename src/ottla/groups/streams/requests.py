"""StreamsGroupHeartbeat for the decider and its result, independent of protocol versions."""

from __future__ import annotations

from typing import NamedTuple

from ottla.groups.streams.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    Endpoint,
)
from ottla.groups.streams.offsets import TaskOffsets
from ottla.groups.streams.status import Status
from ottla.groups.streams.tasks import HeldTasks, Partitions, Tasks
from ottla.groups.streams.topology import TopicInfo, Topology, check_topology
from ottla.protocol.errors import ApiError, ErrorCode

NO_REBALANCE_TIMEOUT = -1


class HeartbeatRequest(NamedTuple):
    """What a member says; None where nothing has changed."""

    group: str
    member_id: str
    """The client makes it."""
    epoch: int
    """JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH or the one that it is in."""
    client_id: str
    client_host: str
    endpoint_epoch: int = 0
    """Of what it last heard of endpoints."""
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NO_REBALANCE_TIMEOUT
    topology: Topology | None = None
    active: Partitions | None = None
    standby: Partitions | None = None
    warmup: Partitions | None = None
    process_id: str | None = None
    endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] | None = None
    """Sorted."""
    task_offsets: TaskOffsets | None = None
    task_end_offsets: TaskOffsets | None = None
    knows_descriptions: bool = False
    """It may be asked to describe the topology (KIP-1331)."""
    shuts_down: bool = False
    """The member asks for the end of the whole application."""

    @property
    def owned(self) -> Tasks | None:
        """What it says that it has; None: it does not say."""
        if self.active is None or self.standby is None or self.warmup is None:
            return None
        return Tasks(self.active, self.standby, self.warmup)

    @property
    def owned_count(self) -> int:
        """How many tasks it says that it has."""
        kinds = (self.active, self.standby, self.warmup)
        return sum(len(numbers) for kind in kinds if kind for numbers in kind.values())


class EndpointPartitions(NamedTuple):
    """Where interactive queries find what: partitions by topic, sorted."""

    endpoint: Endpoint
    active: tuple[tuple[str, tuple[int, ...]], ...]
    standby: tuple[tuple[str, tuple[int, ...]], ...]


class HeartbeatResult(NamedTuple):
    """The answer to a HeartbeatRequest that is not refused."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    task_offset_interval_ms: int = 0
    """How often the member says how far its tasks are."""
    acceptable_recovery_lag: int = -1
    """So many records behind, a copy of a task counts as caught up."""
    statuses: tuple[Status, ...] = ()
    tasks: HeldTasks | None = None
    """What the member has from now on; None: as before."""
    endpoint_epoch: int = 0
    endpoints: tuple[EndpointPartitions, ...] | None = None
    """None: as before."""
    missing_topics: tuple[TopicInfo, ...] = ()
    """Internal topics to create."""
    is_to_describe: bool = False
    """The member is asked to describe the topology."""


def check(request: HeartbeatRequest) -> None:
    """Raises ApiError (INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY) for a request that says too
    little, or what cannot be. Kafka's GroupCoordinatorService.
    """
    _check_supported(request)
    for name, text in (
        ("MemberId", request.member_id),
        ("GroupId", request.group),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if text is not None and not text.strip():
            raise _invalid(f"{name} can't be empty.")
    if request.epoch == JOIN_EPOCH:
        _check_joining(request)
    elif request.epoch == LEAVE_STATIC_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif request.epoch < LEAVE_EPOCH:
        raise _invalid(f"MemberEpoch is {request.epoch}, but must be greater than or equal to -2.")
    kinds = (request.active, request.standby, request.warmup)
    if any(kind is None for kind in kinds) and any(kind is not None for kind in kinds):
        raise _invalid("If one task-type is non-null, all must be non-null.")
    if request.epoch != JOIN_EPOCH and request.topology is not None:
        raise _invalid("Topology can only be provided when (re-)joining.")


def _check_supported(request: HeartbeatRequest) -> None:
    """What Kafka 4.4 does not know yet."""
    if request.topology is not None:
        for subtopology in request.topology.subtopologies:
            if subtopology.source_topic_regexes:
                raise _invalid("Regular expressions for source topics are not supported yet.")


def _check_joining(request: HeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == NO_REBALANCE_TIMEOUT:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    for name in ("active", "standby", "warmup"):
        if getattr(request, name):
            raise _invalid(f"{name.capitalize()}Tasks must be empty when (re-)joining.")
    if request.topology is None:
        raise _invalid("Topology must be non-null when (re-)joining.")
    check_topology(request.topology)


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, message)
