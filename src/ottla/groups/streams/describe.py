"""A streams group as administrators see it. Kafka's StreamsGroup.asDescribedGroup."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import Member
from ottla.groups.streams.offsets import NO_OFFSETS, MemberTaskOffsets
from ottla.groups.streams.tasks import Tasks
from ottla.groups.streams.topology import TopicInfo

STICKY: Final = "sticky"
"""The assignor of every streams group."""
STREAMS_TYPE: Final = "streams"
"""Of ListGroups: the group's type, and the type of its protocol."""


class DescribedSubtopology(NamedTuple):
    """Everything sorted by name."""

    id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    changelog_topics: tuple[TopicInfo, ...]
    repartition_source_topics: tuple[TopicInfo, ...]


class DescribedTopology(NamedTuple):
    epoch: int
    subtopologies: tuple[DescribedSubtopology, ...]


class DescribedMember(NamedTuple):
    """A member, what it is to have, and how far it says that it is with its tasks."""

    member: Member
    target: Tasks
    offsets: MemberTaskOffsets


class DescribedStreamsGroup(NamedTuple):
    """The answer of StreamsGroupDescribe."""

    group: str
    state: str
    epoch: int
    assignment_epoch: int
    topology: DescribedTopology | None
    members: tuple[DescribedMember, ...]
    description: bytes | None = None
    """Of the topology, as `description.encode` has it."""
    assignor: str = STICKY
    """Of the next assignment (KIP-1357)."""


def describe(group: StreamsGroup) -> DescribedStreamsGroup:
    return DescribedStreamsGroup(
        group.group_id,
        group.state.value,
        group.epoch,
        group.target_epoch,
        _topology(group),
        tuple(
            DescribedMember(
                member,
                group.target_of(member.member_id),
                group.soft.task_offsets.get(member.member_id, NO_OFFSETS),
            )
            for member in group.members.values()
        ),
        group.description,
    )


def _topology(group: StreamsGroup) -> DescribedTopology | None:
    """With the numbers of partitions, if its topics are there and a heartbeat has found that."""
    compared = group.soft.compared
    if compared is not None and compared.configured.is_ready:
        configured = compared.configured
        return DescribedTopology(
            configured.epoch,
            tuple(
                DescribedSubtopology(
                    name,
                    tuple(sorted(each.source_topics)),
                    tuple(sorted(each.repartition_sink_topics)),
                    each.changelog_topics,
                    each.repartition_source_topics,
                )
                for name, each in (configured.subtopologies or {}).items()
            ),
        )
    if group.topology is None:
        return None
    return DescribedTopology(
        group.topology.epoch,
        tuple(
            DescribedSubtopology(
                each.id,
                tuple(sorted(each.source_topics)),
                tuple(sorted(each.repartition_sink_topics)),
                tuple(sorted(each.changelog_topics)),
                tuple(sorted(each.repartition_source_topics)),
            )
            for each in group.topology.subtopologies
        ),
    )
