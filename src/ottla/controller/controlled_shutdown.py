"""Controlled shutdown: other brokers take over the partitions of a broker before it stops.

As Kafka's KafkaController.doControlledShutdown: partitions with one replica do not delay it. Nor do
partitions whose other replicas are all dead or shutting down: waiting would not move them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ottla.controller.image import NO_LEADER, ClusterImage, PartitionState
from ottla.controller.leadership import Brokers, Election, all_brokers
from ottla.controller.partition_changes import PartitionChanges
from ottla.controller.plan import Plan, PlanBuilder


@dataclass(frozen=True, slots=True)
class ControlledShutdown:
    """What was moved, and what could not be."""

    elections: tuple[Election, ...]
    remaining: tuple[tuple[str, int], ...]
    """Partitions where only this broker is in sync, but another live replica could catch up."""

    @property
    def may_shut_down(self) -> bool:
        """True when no partition is left that waiting could move."""
        return not self.remaining


def controlled_shutdown(
    broker_id: int, image: ClusterImage, *, shutting_down: Collection[int] = ()
) -> Plan[ControlledShutdown]:
    """Move the leadership away from `broker_id` and remove it from the ISRs.

    `shutting_down` are all brokers that are shutting down, with or without this one: none is
    elected. From now on the caller must count `broker_id` among them.
    """
    builder = PlanBuilder()
    changes = PartitionChanges(image)
    brokers = all_brokers(image, {*shutting_down, broker_id})
    elections: list[Election] = []
    remaining: list[tuple[str, int]] = []
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            if broker_id not in state.isr or state.leader == NO_LEADER:
                continue
            after = _without(broker_id, state, brokers)
            if after is not None:
                changes.put(topic, index, after)
                if after.leader != state.leader:
                    moved = (state.leader, after.leader, after.leader_epoch, False)
                    elections.append(Election(topic.name, index, *moved))
            elif any(map(brokers.eligible, state.replicas)):
                remaining.append((topic.name, index))
    changes.add_to(builder)
    return builder.plan(ControlledShutdown(tuple(elections), tuple(remaining)))


def _without(broker_id: int, state: PartitionState, brokers: Brokers) -> PartitionState | None:
    """The state without this broker; None if no other replica can lead."""
    isr = tuple(b for b in state.isr if b != broker_id)
    if state.leader != broker_id:
        return state._replace(isr=isr)
    leader = next((b for b in state.replicas if b in isr and brokers.eligible(b)), NO_LEADER)
    if leader == NO_LEADER:
        return None
    return state._replace(leader=leader, leader_epoch=state.leader_epoch + 1, isr=isr)
