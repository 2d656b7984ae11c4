"""A rebalance that a test forces."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer

from ottla.testing import Broker, KitError, Topic


def test_the_members_join_again(ottla_broker: Broker, ottla_topic: Topic) -> None:
    assigned: list[int] = []
    consumer = Consumer(
        {
            "bootstrap.servers": ottla_topic.bootstrap,
            "group.id": ottla_topic.name,
            "client.id": "member",
            "heartbeat.interval.ms": 50,
        }
    )
    consumer.subscribe([ottla_topic.name], on_assign=lambda _, found: assigned.append(len(found)))
    try:
        for wanted in ([1], [1, 1]):
            for _ in range(400):
                consumer.poll(0.05)
                if assigned == wanted:
                    break
            assert assigned == wanted
            if wanted == [1]:
                ottla_broker.rebalance(ottla_topic.name)
    finally:
        consumer.close()
    joins = ottla_broker.requests("JoinGroup", client_id="member")
    assert len(joins) >= 2


def test_a_group_without_members_is_refused(ottla_broker: Broker) -> None:
    with pytest.raises(KitError, match="group nobody cannot rebalance: its state is"):
        ottla_broker.rebalance("nobody")
