"""One member of a share group, as its two records have it. Kafka's ShareGroupMember."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.groups.consumer.assignors.spec import NO_PARTITIONS, Partitions
from ottla.groups.consumer.member import MemberState

JOIN_EPOCH: Final = 0
"""With this epoch a member joins, or joins again."""
LEAVE_EPOCH: Final = -1


class Member(NamedTuple):
    """What a member says of itself, its epochs, and the partitions that it reads.

    It never has to give anything up before others get it: partitions are shared.
    """

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topics: frozenset[str] = frozenset()
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Partitions = NO_PARTITIONS

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch
