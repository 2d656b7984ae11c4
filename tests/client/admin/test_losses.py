"""When retention removes what groups have not read."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as PartitionAt

from ottla.client.admin.configs import alter_settings
from ottla.client.admin.health import health_of
from ottla.client.admin.losses import DAY_MS, Loss, losses, losses_of, records_at_risk
from ottla.client.admin.records import delete_records
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.testing import Broker, Topic

HOUR_MS = 3_600_000


def fill(topic: Topic, now_ms: int, *ages_ms: int) -> None:
    """Records of these ages, in partition 0."""
    producer = Producer({"bootstrap.servers": topic.bootstrap})
    for age_ms in ages_ms:
        producer.produce(topic.name, b"x", partition=0, timestamp=now_ms - age_ms)
        producer.flush()


def commit(bootstrap: str, group: str, at: PartitionAt) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=[at], asynchronous=False)
    consumer.close()


def test_when_unread_records_go(ottla_topic: Topic) -> None:
    now_ms = int(time.time() * 1000)
    partition = TopicPartition(ottla_topic.name, 0)
    days = (6 * DAY_MS + 20 * HOUR_MS, 6 * DAY_MS + 10 * HOUR_MS, 6 * DAY_MS + HOUR_MS, HOUR_MS)
    fill(ottla_topic, now_ms, *days)
    with Client(ottla_topic.bootstrap) as client:

        def found(position: int, within_ms: int = DAY_MS) -> Any:
            return losses_of(client, {partition: position}, within_ms, now_ms)

        (all_of_it,) = found(0)
        assert (all_of_it.removed, all_of_it.records) == (0, 3)
        assert 0 <= 4 * HOUR_MS - all_of_it.goes_in_ms <= DAY_MS // 500
        (two,) = found(1)
        assert two.records == 2
        assert 0 <= 14 * HOUR_MS - two.goes_in_ms <= DAY_MS // 500
        (later,) = found(2)
        assert (later.records, later.goes_in_ms // HOUR_MS) == (1, 22)
        assert found(3) == found(4) == []
        assert found(0, HOUR_MS) == []
        assert found(0, 5 * HOUR_MS)[0].records == 1
        # Retention may remove at any moment what is older.
        assert losses_of(client, {partition: 0}, DAY_MS, now_ms + 5 * HOUR_MS)[0].goes_in_ms == 0
        delete_records(client, {partition: 1})
        (gone,) = found(0)
        assert (gone.removed, gone.records) == (1, 2)
        both = losses(client, {"g": {partition: 4}, "h": {partition: 0}}, DAY_MS, now_ms)
        assert list(both) == ["h"]
        unknown = {TopicPartition("no-such-topic", 0): 0}
        assert losses_of(client, unknown, DAY_MS, now_ms) == []


@pytest.mark.parametrize(("name", "value"), [("retention.ms", "-1"), ("cleanup.policy", "compact")])
def test_what_retention_keeps_is_not_lost(ottla_topic: Topic, name: str, value: str) -> None:
    now_ms = int(time.time() * 1000)
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    producer.produce(ottla_topic.name, b"x", b"k", partition=0, timestamp=now_ms - 7 * DAY_MS)
    producer.flush()
    partition = TopicPartition(ottla_topic.name, 0)
    with Client(ottla_topic.bootstrap) as client:
        alter_settings(client, "topic", ottla_topic.name, {name: value}, [])
        assert losses_of(client, {partition: 0}, DAY_MS, now_ms) == []


def test_health_fails_on_it_where_that_is_asked(ottla_topic: Topic) -> None:
    now_ms = int(time.time() * 1000)
    fill(ottla_topic, now_ms, 7 * DAY_MS - 3 * HOUR_MS, 0)
    group = f"losing-{ottla_topic.name}"
    commit(ottla_topic.bootstrap, group, PartitionAt(ottla_topic.name, 0, 0))
    with Client(ottla_topic.bootstrap) as client:

        def said(within_ms: int | None) -> list[str]:
            found = health_of(client, within_ms)
            told = [each for each in found.broken if each.startswith(f"group {group}:")]
            assert (group in (found.losing_groups or ())) == bool(told)
            return told

        (sentence,) = said(6 * HOUR_MS)
        assert f"1 unread record of {ottla_topic.name}-0 goes in 2 h 59 min" in sentence
        assert said(HOUR_MS) == said(None) == []


def test_what_is_at_risk_is_counted_without_asking_when(ottla_topic: Topic) -> None:
    now_ms = int(time.time() * 1000)
    fill(ottla_topic, now_ms, 7 * DAY_MS - 3 * HOUR_MS, 7 * DAY_MS - 5 * HOUR_MS, 0)
    group = f"at-risk-{ottla_topic.name}"
    commit(ottla_topic.bootstrap, group, PartitionAt(ottla_topic.name, 0, 1))
    with Client(ottla_topic.bootstrap) as client:
        assert records_at_risk(client, DAY_MS, now_ms)[group] == 1
        assert group not in records_at_risk(client, HOUR_MS, now_ms)


def test_health_does_not_call_healthy_what_it_may_not_see(ottla_broker: Broker) -> None:
    topic = ottla_broker.create_topic()
    topic.produce("a")
    commit(ottla_broker.bootstrap, "hidden", PartitionAt(topic.name, 0, 0))
    with Client(ottla_broker.bootstrap, {}, client_id="blind") as client:

        def unknown() -> list[str]:
            return [each for each in health_of(client, HOUR_MS).broken if "not known" in each]

        assert unknown() == []
        ottla_broker.fail("OffsetFetch", "GROUP_AUTHORIZATION_FAILED", client_id="blind")
        (said,) = unknown()
        assert said.startswith("what ")
        assert "read may not be seen, so whether unread records go is not known (" in said
        ottla_broker.remove_faults()
        assert unknown() == []


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (Loss("t", 3, 0, 42_000, 11_400_000), "42,000 unread records of t-3 go in 3 h 10 min"),
        (Loss("t", 3, 0, 2, 0), "2 unread records of t-3 go now"),
        (Loss("t", 3, 5, 0, None), "5 unread records of t-3 were removed"),
        (
            Loss("t", 3, 1, 1, 0),
            "1 unread record of t-3 was removed, 1 unread record of t-3 goes now",
        ),
    ],
)
def test_a_loss_in_words(loss: Loss, text: str) -> None:
    assert str(loss) == text
