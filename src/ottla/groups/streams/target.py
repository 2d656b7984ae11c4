"""The target assignment of a streams group: computed for an epoch, for all members at once.

Kafka's TargetAssignmentBuilder. Members are given to the assignor sorted by id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.groups.newer_stored import TargetEpochKey, TargetEpochValue, TargetKey
from ottla.groups.streams.configured import ConfiguredTopology
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import Member
from ottla.groups.streams.offsets import NO_OFFSETS, MemberTaskOffsets
from ottla.groups.streams.settings import STANDBYS
from ottla.groups.streams.sticky import MemberSpec, assign
from ottla.groups.streams.stored import StreamsRecord, TargetValue
from ottla.groups.streams.tasks import NO_TASKS, Tasks


class Arriving(NamedTuple):
    """A member as it is now, perhaps a new one."""

    member: Member
    replaced: Member | None = None
    """The static member whose place it takes."""

    @property
    def former_id(self) -> str:
        """Under which the group has what it was to have."""
        return (self.replaced or self.member).member_id


class NewTarget(NamedTuple):
    """The records, and what each member is to have."""

    records: list[StreamsRecord]
    tasks: dict[str, Tasks]


def compute_target(
    group: StreamsGroup,
    epoch: int,
    arriving: Arriving | None,
    configured: ConfiguredTopology,
    configs: tuple[tuple[str, str], ...],
    offsets: Mapping[str, MemberTaskOffsets],
    now_ms: int,
) -> NewTarget:
    """The targets for this epoch, with records for those that differ. `offsets`: what members said
    of theirs. Without its topics a topology has no tasks.
    """
    members, targets = dict(group.members), group.targets
    if arriving is not None:
        new = arriving.member
        if arriving.replaced is not None:
            del members[arriving.replaced.member_id]
            targets = {**targets, new.member_id: group.target_of(arriving.former_id)}
        members[new.member_id] = new
    assigned: dict[str, Tasks] = {}
    if configured.is_ready:
        assert configured.subtopologies is not None
        specs = {
            member_id: MemberSpec(
                members[member_id].process_id,
                members[member_id].assigned,
                offsets.get(member_id, NO_OFFSETS).offsets,
            )
            for member_id in sorted(members)
        }
        assigned = assign(specs, configured.subtopologies, int(dict(configs).get(STANDBYS, "0")))
    records = []
    for member_id in sorted(members):
        target = assigned.setdefault(member_id, NO_TASKS)
        if target != targets.get(member_id):
            key = TargetKey(group.group_id, member_id)
            records.append(StreamsRecord(key, TargetValue(target)))
    records.append(StreamsRecord(TargetEpochKey(group.group_id), TargetEpochValue(epoch, now_ms)))
    return NewTarget(records, assigned)
