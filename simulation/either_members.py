"""A group whose members speak the classic protocol or that of KIP-848, and change between them: its
type changes with them, in both directions, while brokers crash.

A classic member gives up all partitions before it joins again, and its assignment is in the
consumer protocol: the group's leader writes it, or the coordinator of a consumer group.
"""

from __future__ import annotations

from random import Random
from typing import Any, ClassVar, Final

from ottla.groups.embedded_protocol import read_assignment, write_assignment
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from simulation.consumers import GROUP, SYNC_GROUP, Member, Membership, check
from simulation.epoch_members import EpochMember

NEW: Final = 0.5
"""Of the members."""


class ClassicMember(Member):
    """A classic one whose bytes the coordinator of a consumer group understands."""

    HAS_GENERATIONS: ClassVar[bool] = False

    def _subscription(self) -> bytes:
        topic = self._topic.encode()
        names = (1).to_bytes(4, "big") + len(topic).to_bytes(2, "big") + topic
        return b"\0\1" + names + b"\xff\xff\xff\xff" + bytes(4)

    def _refused(self, code: ErrorCode) -> None:
        super()._refused(code)
        if code is ErrorCode.illegal_generation:
            self._assigned_count = None

    async def _sync(self, joined: Membership, count: int) -> tuple[tuple[int, ...], bool]:
        build = messages_of(SYNC_GROUP, 3, "request")
        assignments: tuple[Any, ...] = ()
        if joined.leads and not joined.skips_assignment:
            owned: dict[str, list[int]] = {member: [] for member in joined.members}
            for partition in range(count):
                owned[joined.members[partition % len(joined.members)]].append(partition)
            assignments = tuple(
                build.SyncGroupRequestAssignment(
                    member_id=member,
                    assignment=write_assignment(1, [(self._topic, partitions)]),
                )
                for member, partitions in owned.items()
            )
        request = build.SyncGroupRequest(
            group_id=GROUP,
            generation_id=joined.generation,
            member_id=self._member_id,
            group_instance_id=self._instance,
            assignments=assignments,
        )
        broker = await self._connections.coordinator(GROUP)
        by_deposed = self._observer.is_deposed(GROUP, broker)
        answer = await self._connections.ask(broker, request, 2 * self._rebalance_ms)
        check(ErrorCode(answer.error_code))
        partitions = read_assignment(bytes(answer.assignment)).partitions
        return tuple(sorted(partitions.get(self._topic, ()))), by_deposed


def either_member(*arguments: Any, **more: Any) -> Member:
    """By chance one or the other; a process that comes back may be another kind than before."""
    random = next(each for each in arguments if isinstance(each, Random))
    kind = EpochMember if random.random() < NEW else ClassicMember
    return kind(*arguments, **more)
