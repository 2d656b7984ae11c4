"""The target assignment of a streams group: computed for an epoch, for all members at once.

Kafka's TargetAssignmentBuilder. Members are given to the assignor sorted by id.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.groups.streams.configured import ConfiguredTopology
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import Member
from ottla.groups.streams.settings import STANDBYS
from ottla.groups.streams.sticky import MemberSpec, assign
from ottla.groups.streams.stored import (
    StreamsRecord,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
)
from ottla.groups.streams.tasks import NO_TASKS, Tasks


class NewTarget(NamedTuple):
    """The records, and what each member is to have."""

    records: list[StreamsRecord]
    tasks: dict[str, Tasks]


def compute_target(
    group: StreamsGroup,
    epoch: int,
    after: Member | None,
    configured: ConfiguredTopology,
    configs: tuple[tuple[str, str], ...],
    now_ms: int,
) -> NewTarget:
    """The targets for this epoch, with records for those that differ; `after` is a member as it
    is now, perhaps a new one. Without its topics a topology has no tasks.
    """
    members = dict(group.members)
    if after is not None:
        members[after.member_id] = after
    assigned: dict[str, Tasks] = {}
    if configured.is_ready:
        assert configured.subtopologies is not None
        specs = {
            member_id: MemberSpec(members[member_id].process_id, group.target_of(member_id))
            for member_id in sorted(members)
        }
        assigned = assign(specs, configured.subtopologies, int(dict(configs).get(STANDBYS, "0")))
    records = []
    for member_id in sorted(members):
        target = assigned.setdefault(member_id, NO_TASKS)
        if target != group.targets.get(member_id):
            key = TargetKey(group.group_id, member_id)
            records.append(StreamsRecord(key, TargetValue(target)))
    records.append(StreamsRecord(TargetEpochKey(group.group_id), TargetEpochValue(epoch, now_ms)))
    return NewTarget(records, assigned)
