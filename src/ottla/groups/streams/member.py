"""One member of a streams group, as its two records have it. Kafka's StreamsGroupMember."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from ottla.groups.streams.tasks import NO_HELD, HeldTasks

JOIN_EPOCH: Final = 0
"""With this epoch a member joins, or joins again."""
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2


class MemberState(IntEnum):
    """As stored (KIP-1071)."""

    STABLE = 1
    """It has all of its target in the member's epoch."""
    UNREVOKED_TASKS = 2
    """It has to give up tasks first."""
    UNRELEASED_TASKS = 3
    """Others, or other members of its process, have tasks of its target."""
    UNKNOWN = 127

    @classmethod
    def of(cls, number: int) -> MemberState:
        """A number of a later version is UNKNOWN."""
        return cls(number) if number in (1, 2, 3) else cls.UNKNOWN


class Endpoint(NamedTuple):
    """Where a process answers interactive queries."""

    host: str
    port: int


class Member(NamedTuple):
    """What a member says of itself, its epochs, and its tasks."""

    member_id: str
    instance_id: str | None = None
    """Of a static member (KIP-345): who comes back with it takes its place."""
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    """Of the instance of the application; it may have several members (threads)."""
    endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] = ()
    """Sorted."""
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: HeldTasks = NO_HELD
    pending_revocation: HeldTasks = NO_HELD

    def absent(self) -> Member:
        """As a static member that left for a while is kept: the next process with its instance id
        takes over, and may commit in any epoch of its own.
        """
        active = {name: dict.fromkeys(epochs, 0) for name, epochs in self.assigned.active.items()}
        return self._replace(
            epoch=LEAVE_STATIC_EPOCH,
            assigned=self.assigned._replace(active=active),
            pending_revocation=NO_HELD,
        )

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch
