"""No partition has two owners in a group of the consumer protocol, and no task in a streams group,
as the coordinator has it.
"""

from __future__ import annotations

from typing import Any

from ottla.groups.shard import GroupShard
from ottla.groups.streams.tasks import TaskId, each
from simulation.broker import Broker
from simulation.replay import loaded
from simulation.violation import Violation


class OwnersWatch:
    """Looks at the coordinators of all brokers."""

    def __init__(self, brokers: list[Broker]) -> None:
        self._brokers = brokers

    def check(self) -> None:
        """Raises Violation."""
        for broker in self._brokers:
            for partition in loaded(broker):
                if isinstance(partition.shard, GroupShard):
                    for group in partition.shard.consumer.groups.values():
                        check_owners(group, broker.name)
                    for streams in partition.shard.streams.groups.values():
                        check_task_owners(streams, broker.name)
                        check_said(streams, broker.name)


def check_owners(group: Any, where: str) -> None:
    """Also that the group knows who owns what. Raises Violation."""
    owners: dict[tuple[Any, int], Any] = {}
    for member in group.members.values():
        for part in (member.assigned, member.pending_revocation):
            for topic, epochs in part.items():
                for number in epochs:
                    other = owners.setdefault((topic, number), member)
                    if other is not member:
                        raise Violation(
                            f"group {group.group_id} on {where}: members {other.member_id} and "
                            f"{member.member_id} both have partition {number}"
                        )
    known = {partition: member.epoch for partition, member in owners.items()}
    if known != group.owner_epochs:
        raise Violation(
            f"group {group.group_id} on {where}: it has owners {group.owner_epochs}, its members "
            f"{known}"
        )


def check_task_owners(group: Any, where: str) -> None:
    """No two members have an active task, no process has one twice, and the group knows who has
    which. Raises Violation.
    """
    active: dict[TaskId, Any] = {}
    copies: dict[TaskId, dict[str, Any]] = {}
    for member in group.members.values():
        for held in (member.assigned, member.pending_revocation):
            for task in each(held.active):
                other = active.setdefault(task, member)
                if other is not member:
                    raise Violation(
                        f"group {group.group_id} on {where}: members {other.member_id} and"
                        f" {member.member_id} both have task {task}"
                    )
            for task in each(held.standby):
                copies.setdefault(task, {})[member.process_id] = member
    for task, member in active.items():
        beside = copies.get(task, {}).get(member.process_id)
        is_both = task in set(each(member.assigned.active)) & set(each(member.assigned.standby))
        # A member may have it as a standby task while it gives the active one up.
        if is_both or beside not in (None, member):
            raise Violation(
                f"group {group.group_id} on {where}: {member.process_id} has task {task} active and"
                " as a standby task"
            )
    known = {task: member.process_id for task, member in active.items()}
    having = {task: set(processes) for task, processes in copies.items()}
    if known != group.active_owners or having != group.standby_owners:
        raise Violation(
            f"group {group.group_id} on {where}: it has owners {group.active_owners} and"
            f" {group.standby_owners}, its members {known} and {having}"
        )


def check_said(group: Any, where: str) -> None:
    """What members said of their states is forgotten when they go. Raises Violation."""
    others = group.soft.task_offsets.keys() - group.members.keys()
    if others:
        raise Violation(
            f"group {group.group_id} on {where}: it knows task offsets of {sorted(others)}, which"
            " are no members"
        )
