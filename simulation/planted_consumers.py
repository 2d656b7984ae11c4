"""Bugs of groups of the consumer protocol (KIP-848), as patches like those in `planted`.

They are looked for in runs with `--consumers`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.coordinator.coordinator_partition import CoordinatorPartition
from ottla.coordinator.partition_log import PartitionLog
from ottla.coordinator.shared_append import SharedAppend
from ottla.groups.consumer import departure, heartbeat, reconcile
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.shard import ConsumerGroupShard
from ottla.groups.newer_stored import GroupKey
from ottla.groups.offsets import commit
from ottla.protocol.errors import ErrorCode
from simulation.pace import Pace
from simulation.planted import Patch, Sighting


def owners_are_not_asked(patch: Patch) -> None:
    """A member gets its target's partitions while others still have them (KAFKA-16147)."""
    right = reconcile.reconcile

    def at_once(member: Any, target: Any, owner_epoch: Any, reported: Any) -> Any:
        return right(member, target, lambda topic, partition: reconcile.NO_OWNER, reported)

    patch.setattr(heartbeat, "reconcile", at_once)


def former_members_commit(patch: Patch) -> None:
    """Any epoch of any member may commit."""
    patch.setattr(commit, "late_member", lambda *_, **__: None)


def departed_members_keep_their_partitions(patch: Patch) -> None:
    """The owner of a partition stays when the member has gone."""
    right = ConsumerGroup._forget

    def forget(self: ConsumerGroup, member: Any) -> None:
        owners = dict(self.owner_epochs)
        right(self, member)
        self.owner_epochs.update(owners)

    patch.setattr(ConsumerGroup, "_forget", forget)


def a_new_coordinator_expires_nobody(patch: Patch) -> None:
    """The members of a group that is loaded have no session timeout until their next heartbeat."""
    patch.setattr(ConsumerGroupShard, "loaded", lambda *_: None)


def departures_begin_no_epoch(patch: Patch) -> None:
    """What a member had is assigned to nobody when it has gone."""
    right = departure.remove

    def remove(group: Any, member: Any, topics: Any, step: Any, cause: Any) -> None:
        right(group, member, topics, step, cause)
        step.records[:] = [each for each in step.records if not isinstance(each.key, GroupKey)]

    patch.setattr(departure, "remove", remove)


def targets_are_not_loaded(patch: Patch) -> None:
    """A new coordinator knows no targets."""
    right = ConsumerGroupShard.loaded

    def loaded(self: ConsumerGroupShard, group_id: str, step: Any) -> None:
        self.groups[group_id].targets.clear()
        right(self, group_id, step)

    patch.setattr(ConsumerGroupShard, "loaded", loaded)


def what_is_not_appended_is_kept(patch: Patch) -> None:
    """The log refuses a batch of heartbeats, and the coordinator goes on with what it applied.

    That too few replicas are in sync is mostly known before; here it is not.
    """
    right = CoordinatorPartition._append_contents

    def append_contents(self: CoordinatorPartition[Any], shared: SharedAppend) -> bool:
        if not right(self, shared):
            shared.finish(ErrorCode.not_coordinator)
        return True

    patch.setattr(PartitionLog, "check", lambda self: None)
    patch.setattr(CoordinatorPartition, "_append_contents", append_contents)


PLANTED_CONSUMERS: Final[dict[Callable[[Patch], None], Sighting]] = {
    owners_are_not_asked: Sighting(5),
    former_members_commit: Sighting(9),
    departed_members_keep_their_partitions: Sighting(),
    a_new_coordinator_expires_nobody: Sighting(1),
    departures_begin_no_epoch: Sighting(8),
    targets_are_not_loaded: Sighting(),
    what_is_not_appended_is_kept: Sighting(17, pace=Pace.SWIFT),
}
