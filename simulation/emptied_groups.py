"""When a group has no member any more: its generations may begin again then.

A client cannot know it, so the coordinator that leads the group's partition is looked at after each
of its steps.
"""

from __future__ import annotations

from collections.abc import Callable

from faults.history import Emptied, Event

from ottla.groups.shard import GroupShard
from ottla.shards.partitioning import partition_for
from simulation.broker import Broker
from simulation.cluster import OFFSETS, OFFSETS_PARTITIONS
from simulation.replay import loaded


class EmptiedGroups:
    """Notes an event each time that the last member of a group has gone."""

    def __init__(
        self,
        group: str,
        note: Callable[[Event], None],
        now_ms: Callable[[], int],
        is_deposed: Callable[[str, int], bool],
    ) -> None:
        self._group = group
        self._partition = f"{OFFSETS}-{partition_for(group, OFFSETS_PARTITIONS)}"
        self._note = note
        self._now_ms = now_ms
        self._is_deposed = is_deposed
        self._has_members = False

    def stepped(self, broker: Broker) -> None:
        """The broker's process has done one step."""
        for partition in loaded(broker):
            if partition.name != self._partition or self._is_deposed(self._group, broker.number):
                continue
            had, self._has_members = self._has_members, self._members(partition.shard)
            if had and not self._has_members:
                self._note(Emptied(self._now_ms()))

    def _members(self, shard: GroupShard) -> bool:
        groups = shard.groups.get(self._group), shard.consumer.groups.get(self._group)
        return any(each is not None and each.members for each in groups)
