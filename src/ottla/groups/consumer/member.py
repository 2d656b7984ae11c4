"""One member of a consumer group, as its two records have it.

Kafka's counterparts are ConsumerGroupMember and MemberState.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from ottla.groups.consumer.assignors.spec import Partitions

JOIN_EPOCH: Final = 0
"""With this epoch a member joins, or joins again."""
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2
"""A static member leaves for a while: its instance id keeps its place."""

OwnedPartitions: TypeAlias = Mapping[UUID, Mapping[int, int]]
"""Topic id to partition to the epoch in which the member got it."""

NO_OWNED: OwnedPartitions = {}


class MemberState(IntEnum):
    """Where a member is on its way to its target; the numbers are stored."""

    STABLE = 0
    """It has what the target of its epoch gives it."""
    UNREVOKED_PARTITIONS = 1
    """It has to give up partitions before it gets into the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that others have not given up yet."""
    UNKNOWN = 127
    """Written by a newer coordinator."""

    @classmethod
    def of(cls, number: int) -> MemberState:
        """The state with this number, UNKNOWN for one that we do not know."""
        return cls(number) if number in (0, 1, 2) else cls.UNKNOWN


class ClassicMetadata(NamedTuple):
    """What a member that speaks the classic protocol supports."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class Member(NamedTuple):
    """What a member says of itself, its epochs, and the partitions that it has."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topics: frozenset[str] = frozenset()
    subscribed_regex: str | None = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None
    """None for a member of the consumer protocol."""
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: OwnedPartitions = NO_OWNED
    """Its own, and the only ones that it may read."""
    pending_revocation: OwnedPartitions = NO_OWNED
    """Its own until it reports that it has given them up."""

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch

    def with_epoch(self, epoch: int) -> Member:
        """In this epoch; the previous one is remembered, as the answer may be lost."""
        return self._replace(epoch=epoch, previous_epoch=self.epoch)

    def has_same_partitions(self, other: Member) -> bool:
        """Epochs aside."""
        return self.assigned is other.assigned or (
            partitions_of(self.assigned) == partitions_of(other.assigned)
        )


def partitions_of(owned: OwnedPartitions) -> Partitions:
    """The same without epochs."""
    return {topic: frozenset(epochs) for topic, epochs in owned.items()}
