"""A consumer group as administrators see it. Kafka's ConsumerGroup.asDescribedGroup."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.groups.consumer.assignors.spec import Partitions
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member, partitions_of
from ottla.groups.consumer.subscription import preferred_assignor

CONSUMER_TYPE: Final = "consumer"
"""Of ListGroups."""


class DescribedMember(NamedTuple):
    """A member with what it is to have."""

    member: Member
    target: Partitions

    @property
    def owned(self) -> Partitions:
        """Also what it is to give up and may still read."""
        owned = dict(partitions_of(self.member.assigned))
        for topic, partitions in self.member.pending_revocation.items():
            owned[topic] = owned.get(topic, frozenset()).union(partitions)
        return owned


class DescribedConsumerGroup(NamedTuple):
    """The answer of ConsumerGroupDescribe, independent of its version."""

    group: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[DescribedMember, ...]


def describe(group: ConsumerGroup) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(
        group.group_id,
        group.state.value,
        group.epoch,
        group.target_epoch,
        preferred_assignor(group.members.values()),
        tuple(
            DescribedMember(member, group.target_of(member)) for member in group.members.values()
        ),
    )
