"""A broker that wants to stop: others take over what it leads, before it goes.

As Kafka's KafkaController.doControlledShutdown: partitions with one replica do not hold it up. Nor
do those whose other replicas are all away or leaving, too: waiting would not move them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ottla.controller.image import NO_LEADER, ClusterImage, PartitionState
from ottla.controller.leadership import Brokers, Election, all_brokers
from ottla.controller.partition_changes import PartitionChanges
from ottla.controller.plan import Draft, Plan


@dataclass(frozen=True, slots=True)
class Leaving:
    """What was moved, and what could not be."""

    elections: tuple[Election, ...]
    remaining: tuple[tuple[str, int], ...]
    """Partitions of which only this broker is in sync, and another could be: it stays."""

    @property
    def may_shut_down(self) -> bool:
        """True when nothing is left that waiting could move."""
        return not self.remaining


def controlled_shutdown(
    broker_id: int, image: ClusterImage, *, shutting_down: Collection[int] = ()
) -> Plan[Leaving]:
    """Move the leadership away from `broker_id` and take it out of the in-sync replicas.

    `shutting_down` are all brokers that want to stop (this one may be among them or not): none is
    chosen. From now on the caller must count `broker_id` among them.
    """
    draft = Draft()
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
    changes.into(draft)
    return draft.plan(Leaving(tuple(elections), tuple(remaining)))


def _without(broker_id: int, state: PartitionState, brokers: Brokers) -> PartitionState | None:
    """The state once this broker has left it; None where nobody else can lead."""
    isr = tuple(b for b in state.isr if b != broker_id)
    if state.leader != broker_id:
        return state._replace(isr=isr)
    leader = next((b for b in state.replicas if b in isr and brokers.eligible(b)), NO_LEADER)
    if leader == NO_LEADER:
        return None
    return state._replace(leader=leader, leader_epoch=state.leader_epoch + 1, isr=isr)
