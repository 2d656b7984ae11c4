"""Giving partitions back to their preferred leaders (auto.leader.rebalance.enable).

As Kafka's KafkaController.checkAndTriggerAutoLeaderRebalance: a broker gets its partitions back
when others lead more than leader.imbalance.per.broker.percentage of those it is the preferred
leader of.
"""

from __future__ import annotations

from collections.abc import Collection

from ottla.config.broker import BrokerConfig
from ottla.controller.image import NO_LEADER, ClusterImage, TopicImage
from ottla.controller.leadership import Election, all_brokers
from ottla.controller.partition_changes import PartitionChanges
from ottla.controller.plan import Plan, PlanBuilder


def rebalance(
    image: ClusterImage,
    config: BrokerConfig,
    *,
    shutting_down: Collection[int] = (),
    only: Collection[int] | None = None,
) -> Plan[tuple[Election, ...]]:
    """Elect the preferred leaders of imbalanced brokers; the reply is what was moved.

    `only` limits the check to these brokers; None means all. Partitions under reassignment are left
    alone: their replicas will change anyway.
    """
    builder = PlanBuilder()
    changes = PartitionChanges(image)
    brokers = all_brokers(image, shutting_down)
    preferred: dict[int, int] = {}
    elsewhere: dict[int, list[tuple[TopicImage, int]]] = {}
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            first = state.replicas[0]
            preferred[first] = preferred.get(first, 0) + 1
            if state.leader != first:
                elsewhere.setdefault(first, []).append((topic, index))
    elections: list[Election] = []
    for broker in sorted(elsewhere):
        if only is not None and broker not in only:
            continue
        share = 100 * len(elsewhere[broker]) / preferred[broker]
        if share <= config.leader_imbalance_per_broker_percentage or not brokers.eligible(broker):
            continue
        for topic, index in elsewhere[broker]:
            state = topic.partitions[index]
            if broker not in state.isr or state.is_reassigning or state.leader == NO_LEADER:
                continue
            after = state._replace(leader=broker, leader_epoch=state.leader_epoch + 1)
            changes.put(topic, index, after)
            moved = (state.leader, broker, after.leader_epoch, False)
            elections.append(Election(topic.name, index, *moved))
    changes.add_to(builder)
    return builder.plan(tuple(elections))
