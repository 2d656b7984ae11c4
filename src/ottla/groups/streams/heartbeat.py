"""A heartbeat of a streams group's member: what it says is stored, and it gets to know its tasks.

1. The member is new or says something new: its record, and a new epoch of the group. A static
   member that comes back takes the place of the one that left, in the same epoch.
2. The group has no topology yet: it gets the member's, and keeps it.
3. The topology is compared with the topics of the cluster, once after each change of these: is it
   ready, does it fit, which internal topics are missing? Another outcome is a new epoch.
4. The group's epoch is ahead of its targets: they are computed, at most once per interval. A group
   that had no members waits for more of them before.
5. The member is led one step towards its target (`reconcile`).

Kafka's counterpart is GroupMetadataManager.streamsGroupHeartbeat.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.groups.consumer.target import may_assign
from ottla.groups.consumer.topics import Topics
from ottla.groups.newer_stored import GroupKey
from ottla.groups.streams.configured import ConfiguredTopology, configure
from ottla.groups.streams.departure import leave
from ottla.groups.streams.describe_topology import asked
from ottla.groups.streams.endpoints import endpoint_partitions
from ottla.groups.streams.group import Compared, Soft, StreamsGroup
from ottla.groups.streams.member import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH, Member
from ottla.groups.streams.noted import note_assigned, note_change, note_reached
from ottla.groups.streams.offsets import NO_OFFSETS
from ottla.groups.streams.reconcile import reconcile
from ottla.groups.streams.requests import (
    EndpointPartitions,
    HeartbeatRequest,
    HeartbeatResult,
)
from ottla.groups.streams.sender import has_missed, is_assigned_otherwise, joined, updated
from ottla.groups.streams.status import Status, StatusCode
from ottla.groups.streams.step import Step
from ottla.groups.streams.stored import NOT_VALIDATED, GroupValue, StreamsRecord
from ottla.groups.streams.target import Arriving, compute_target
from ottla.groups.streams.tasks import NO_TASKS, Tasks
from ottla.groups.streams.timers import (
    await_heartbeat,
    await_members,
    await_revocation,
    forget,
)
from ottla.groups.streams.topology import Topology
from ottla.groups.streams.written import (
    current_record,
    member_record,
    replacement_records,
    topology_record,
)
from ottla.protocol.errors import ApiError, ErrorCode


class Decided(NamedTuple):
    """The answer, and what the group knows from then on beside its records."""

    result: HeartbeatResult
    soft: Soft


def heartbeat(
    group: StreamsGroup, request: HeartbeatRequest, topics: Topics, step: Step
) -> Decided:
    """Answers a checked request (`requests.check`); raises ApiError where it is refused."""
    if request.epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
        return _leave(group, request, step)
    before, replaced = joined(group, request, step)
    if replaced is not None:
        step.records += replacement_records(group, replaced, before)
        forget(group.group_id, replaced.member_id, step)
    after = updated(before, request)
    if after != before:
        step.records.append(member_record(group.group_id, after))
    statuses: list[Status] = []
    topology = _topology(group, request, step)
    is_stale = group.topology is not None and after.topology_epoch < topology.epoch
    if is_stale:
        statuses.append(_stale(after, topology))
    compared = _compared(group, topology, topics)
    configured = compared.configured
    if configured.is_ready:
        _check_tasks(request, configured)
    bumps = is_assigned_otherwise(before, after, is_static=request.instance_id is not None)
    epoch = _next_epoch(group, compared, step, bumps=bumps)
    note_change(group, after, replaced, configured, epoch, step, bumps=bumps)
    soft = _with_offsets(group.soft._replace(compared=compared), request)
    soft = _delayed_if_first(soft, group, step)
    target_epoch, target = _target(group, epoch, Arriving(after, replaced), soft, step, statuses)
    reconciled = _reconciled(after, target_epoch, target, group, request.owned, step)
    await_heartbeat(group.group_id, after.member_id, step)
    soft = _shut_down(soft, request)
    is_moved = reconciled.assigned != before.assigned
    is_new = request.epoch == JOIN_EPOCH or is_moved
    if after.endpoint != before.endpoint or (is_moved and after.endpoint is not None):
        soft = soft._replace(endpoint_epoch=soft.endpoint_epoch + 1)
    if configured.problem is not None:
        statuses.append(configured.problem)
    if soft.shutdown_by is not None:
        statuses.append(_shutdown(soft.shutdown_by))
    can_describe = request.knows_descriptions and not is_stale
    asking = asked(group, topology.epoch, soft, step.now_ms) if can_describe else None
    soft = asking or soft
    return Decided(
        HeartbeatResult(
            reconciled.member_id,
            reconciled.epoch,
            step.settings.heartbeat_interval_ms,
            step.settings.task_offset_interval_ms,
            step.settings.acceptable_recovery_lag,
            tuple(statuses),
            reconciled.assigned if is_new or has_missed(request, reconciled) else None,
            # Kafka tells 0 where this heartbeat makes the group.
            soft.endpoint_epoch if group.revision else 0,
            _endpoints(group, request, Arriving(reconciled, replaced), topics, soft),
            configured.missing_topics,
            asking is not None,
        ),
        _kept(soft, group, Arriving(reconciled, replaced)),
    )


def _kept(soft: Soft, group: StreamsGroup, arriving: Arriving) -> Soft:
    """As the group has it once the records are applied: what a replaced member said is gone. Kafka
    forgets more of a group that this heartbeat makes, such as offsets of tasks.
    """
    if not group.revision:
        soft = soft._replace(endpoint_epoch=0)
    old = arriving.replaced
    if old is None:
        return soft
    return soft.without(old.member_id, is_empty=len(group.members) == 1)


def _leave(group: StreamsGroup, request: HeartbeatRequest, step: Step) -> Decided:
    result = leave(group, request, step)
    soft = _shut_down(group.soft, request)
    if request.epoch == LEAVE_EPOCH:
        soft = soft.without(request.member_id, is_empty=len(group.members) == 1)
    return Decided(result, soft)


def _shut_down(soft: Soft, request: HeartbeatRequest) -> Soft:
    """The first member that asks for the end of the application is remembered."""
    if request.shuts_down and soft.shutdown_by is None:
        return soft._replace(shutdown_by=request.member_id)
    return soft


def _reconciled(
    member: Member,
    target_epoch: int,
    target: Tasks,
    group: StreamsGroup,
    owned: Tasks | None,
    step: Step,
) -> Member:
    """One step nearer to its target."""
    if member.is_reconciled_to(target_epoch):
        return member
    nearer = reconcile(member, target_epoch, target, group, owned)
    if nearer != member:
        step.records.append(current_record(group.group_id, nearer))
        if nearer.is_reconciled_to(target_epoch):
            note_reached(group, nearer, step)
        await_revocation(group.group_id, nearer, step)
    return nearer


def _with_offsets(soft: Soft, request: HeartbeatRequest) -> Soft:
    if request.task_offsets is None and request.task_end_offsets is None:
        return soft
    had = soft.task_offsets.get(request.member_id, NO_OFFSETS)
    said = had.updated(request.task_offsets, request.task_end_offsets)
    return soft._replace(task_offsets={**soft.task_offsets, request.member_id: said})


def _delayed_if_first(soft: Soft, group: StreamsGroup, step: Step) -> Soft:
    """The first member of a group waits for others."""
    if group.members or soft.is_delayed or step.settings.initial_rebalance_delay_ms <= 0:
        return soft
    await_members(group.group_id, step)
    return soft._replace(is_delayed=True)


def _topology(group: StreamsGroup, request: HeartbeatRequest, step: Step) -> Topology:
    """The group's, perhaps from this member; raises ApiError (INVALID_REQUEST) for another one."""
    if group.topology is None:
        if request.topology is None:
            raise ApiError(
                ErrorCode.fenced_member_epoch,
                "The streams group has no topology. The member must rejoin, and bring one.",
            )
        step.records.append(topology_record(group.group_id, request.topology))
        return request.topology
    brought = request.topology
    if brought is not None and brought.epoch >= group.topology.epoch and brought != group.topology:
        raise ApiError(ErrorCode.invalid_request, "Topology updates are not supported yet.")
    return group.topology


def _stale(member: Member, topology: Topology) -> Status:
    return Status(
        StatusCode.STALE_TOPOLOGY,
        f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch"
        f" {topology.epoch}.",
    )


def _shutdown(member_id: str) -> Status:
    return Status(
        StatusCode.SHUTDOWN_APPLICATION,
        f"Streams group member {member_id} encountered a fatal error and requested a shutdown for"
        " the entire application.",
    )


def _compared(group: StreamsGroup, topology: Topology, topics: Topics) -> Compared:
    """Compares only if the topics have changed since the last time."""
    last = group.soft.compared
    if last is not None and last.topics_version == topics.version and group.topology is topology:
        return last
    metadata_hash = topics.metadata_hash(topology.required_topics())
    if last is not None and last.metadata_hash == metadata_hash and group.topology is topology:
        return last._replace(topics_version=topics.version)
    return Compared(topics.version, topology, metadata_hash, configure(topology, topics))


def _check_tasks(request: HeartbeatRequest, configured: ConfiguredTopology) -> None:
    """Raises ApiError (INVALID_REQUEST) for a task that there is not."""
    subtopologies = configured.subtopologies or {}
    for tasks in (request.active, request.standby, request.warmup):
        for name, numbers in (tasks or {}).items():
            subtopology = subtopologies.get(name)
            if subtopology is None:
                raise ApiError(
                    ErrorCode.invalid_request, f"Subtopology {name} does not exist in the topology."
                )
            for number in numbers:
                if not 0 <= number < subtopology.task_count:
                    raise ApiError(
                        ErrorCode.invalid_request,
                        f"Task {number} for subtopology {name} is invalid. Number of tasks for this"
                        f" subtopology: {subtopology.task_count}",
                    )


def _next_epoch(group: StreamsGroup, compared: Compared, step: Step, *, bumps: bool) -> int:
    configured, configs = compared.configured, step.settings.assignment_configs
    validated = configured.epoch if configured.is_ready else NOT_VALIDATED
    if (
        not bumps
        and compared.metadata_hash == group.metadata_hash
        and validated == group.validated_topology_epoch
        and configs == group.assignment_configs
    ):
        return group.epoch
    value = GroupValue(
        group.epoch + 1, compared.metadata_hash, validated, configs, group.described_epoch,
        group.undescribable_epoch,
    )  # fmt: skip
    step.records.append(StreamsRecord(GroupKey(group.group_id), value))
    return group.epoch + 1


def _target(
    group: StreamsGroup,
    epoch: int,
    arriving: Arriving,
    soft: Soft,
    step: Step,
    statuses: list[Status],
) -> tuple[int, Tasks]:
    """For which epoch, and what the member is to have; computed now if it is time."""
    compared = soft.compared
    assert compared is not None
    if soft.is_delayed:
        statuses.append(_delayed("initial rebalance delay"))
        return group.target_epoch, NO_TASKS
    last = group.target_epoch, group.target_of(arriving.former_id)
    if epoch <= group.target_epoch:
        return last
    interval_ms = step.settings.assignment_interval_ms
    if not may_assign(group.target_timestamp_ms, interval_ms, step.now_ms):
        statuses.append(_delayed("assignment interval"))
        return last
    configs = step.settings.assignment_configs
    new = compute_target(
        group, epoch, arriving, compared.configured, configs, soft.task_offsets, step.now_ms
    )
    note_assigned(group, epoch, arriving, new.records, step)
    step.records += new.records
    return epoch, new.tasks[arriving.member.member_id]


def _delayed(by: str) -> Status:
    detail = f"Assignment delayed due to the configured {by}."
    return Status(StatusCode.ASSIGNMENT_DELAYED, detail)


def _endpoints(
    group: StreamsGroup,
    request: HeartbeatRequest,
    arriving: Arriving,
    topics: Topics,
    soft: Soft,
) -> tuple[EndpointPartitions, ...] | None:
    if soft.endpoint_epoch == request.endpoint_epoch:
        return None
    assert soft.compared is not None
    # The one that comes last, and not the one that it replaces.
    others = {**group.members}
    for name in (arriving.member.member_id, arriving.former_id):
        others.pop(name, None)
    members = (*others.values(), arriving.member)
    return endpoint_partitions(members, soft.compared.configured, topics)


def assign_first(group: StreamsGroup, step: Step) -> None:
    """The group has waited for members: its first targets."""
    compared = group.soft.compared
    if not group.members or group.epoch <= group.target_epoch or compared is None:
        return
    interval_ms = step.settings.assignment_interval_ms
    if may_assign(group.target_timestamp_ms, interval_ms, step.now_ms):
        new = compute_target(
            group, group.epoch, None, compared.configured, group.assignment_configs,
            group.soft.task_offsets, step.now_ms,
        )  # fmt: skip
        note_assigned(group, group.epoch, None, new.records, step)
        step.records += new.records
