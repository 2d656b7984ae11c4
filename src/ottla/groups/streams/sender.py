"""The member that sends a heartbeat: which one it is, and what it says of itself.

A static member that joins again without having left did not get the answer, or was fenced: it is
the member, as one without an instance id is. Kafka refuses it with UNRELEASED_INSTANCE_ID, which
ends Kafka Streams. A member's id is made by its client, so no other process has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.groups.streams.departure import known_member, known_static_member
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import JOIN_EPOCH, LEAVE_STATIC_EPOCH, Member
from ottla.groups.streams.requests import NO_REBALANCE_TIMEOUT, HeartbeatRequest
from ottla.groups.streams.step import Step
from ottla.groups.streams.tasks import Partitions
from ottla.protocol.errors import ApiError, ErrorCode


def joined(
    group: StreamsGroup, request: HeartbeatRequest, step: Step
) -> tuple[Member, Member | None]:
    """The member as it is, perhaps a new one, and the static one whose place it takes.

    Raises ApiError (GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH; of a static
    member also UNRELEASED_INSTANCE_ID where another one has its place and has not left it,
    FENCED_INSTANCE_ID where it is another one by now).
    """
    member_id, instance_id = request.member_id, request.instance_id
    if request.epoch == JOIN_EPOCH:
        old = None if instance_id is None else group.static_member(instance_id)
        if old is not None and (old.member_id != member_id or old.epoch == LEAVE_STATIC_EPOCH):
            return _in_place_of(old, member_id), old
        limit = step.settings.max_size
        if len(group.members) >= limit and member_id not in group.members:
            raise ApiError(
                ErrorCode.group_max_size_reached,
                f"The streams group has reached its maximum capacity of {limit} members.",
            )
        return group.members.get(member_id, Member(member_id)), None
    if instance_id is None:
        member = known_member(group, member_id)
    else:
        member = known_static_member(group, instance_id, member_id)
    _check_epoch(member, request)
    return member, None


def _in_place_of(old: Member, member_id: str) -> Member:
    if old.epoch != LEAVE_STATIC_EPOCH:
        raise ApiError(
            ErrorCode.unreleased_instance_id,
            f"Static member {member_id} with instance id {old.instance_id} cannot join the group"
            f" because the instance id is owned by {old.member_id} member.",
        )
    return old._replace(member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)


def _check_epoch(member: Member, request: HeartbeatRequest) -> None:
    """The member is where it should be, or one epoch behind because an answer was lost."""
    epoch = request.epoch
    if epoch == member.epoch:
        return
    if epoch == member.previous_epoch and epoch < member.epoch:
        owned, has = request.owned, member.assigned
        if owned is not None and all(
            _are_in(mine, theirs) for mine, theirs in zip(owned, has, strict=True)
        ):
            return
    than = "greater" if epoch > member.epoch else "smaller"
    raise ApiError(
        ErrorCode.fenced_member_epoch,
        f"The streams group member has a {than} member epoch ({epoch}) than the one known by the"
        f" group coordinator ({member.epoch}). The member must abandon all its partitions and"
        " rejoin.",
    )


def _are_in(owned: Partitions, has: Mapping[str, Iterable[int]]) -> bool:
    return all(name in has and numbers.issubset(has[name]) for name, numbers in owned.items())


def has_missed(request: HeartbeatRequest, member: Member) -> bool:
    """Whether the member says what it has, and tasks that it was given are not among that.

    Kafka Streams says what it has after a request without an answer. Kafka does not tell it again:
    tasks that were in the lost answer stay with a member that never hears of them, and do not run.
    """
    owned, has = request.owned, member.assigned
    return owned is not None and any(
        not mine.get(name, frozenset()).issuperset(numbers)
        for mine, theirs in zip(owned, has, strict=True)
        for name, numbers in theirs.items()
    )


def updated(member: Member, request: HeartbeatRequest) -> Member:
    timeout_ms = request.rebalance_timeout_ms
    said: dict[str, Any] = {
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "rebalance_timeout_ms": None if timeout_ms == NO_REBALANCE_TIMEOUT else timeout_ms,
        "topology_epoch": None if request.topology is None else request.topology.epoch,
        "process_id": request.process_id,
        "endpoint": request.endpoint,
        "client_tags": request.client_tags,
    }
    member = member._replace(client_id=request.client_id, client_host=request.client_host)
    if request.epoch == JOIN_EPOCH:
        member = member._replace(endpoint=None)
    return member._replace(**{name: value for name, value in said.items() if value is not None})


def is_assigned_otherwise(before: Member, after: Member, *, is_static: bool) -> bool:
    """Whether the member says something that the tasks are assigned again for: of a static member
    only what they are assigned by.
    """
    if not is_static:
        return before != after
    return (before.topology_epoch, before.rack_id, before.client_tags, before.process_id) != (
        after.topology_epoch, after.rack_id, after.client_tags, after.process_id,
    )  # fmt: skip
