"""What is wrong comes first, in words with what to do."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as PartitionAt
from tests.console.served_console import Visitor

from ottla.client.admin.cluster import PartitionState
from ottla.client.admin.health import Problem
from ottla.client.admin.losses import DAY_MS
from ottla.console.pages.overview import MAX_LINKS, shown
from ottla.testing import Topic


def test_a_healthy_broker(visitor: Visitor) -> None:
    words = visitor.get("/").words
    assert "Everything works" in words
    assert "Controller 1 epoch" in words


def test_a_problem_names_the_first_partitions() -> None:
    bad = tuple(PartitionState("t", number, None, [1], [], 1) for number in range(MAX_LINKS + 5))
    found = shown(Problem("17 partitions without a leader", "Start it.", True, bad))
    assert found.links[0] == ("t-0", "/topics/t/partitions")
    assert len(found.links) == MAX_LINKS
    assert found.more == 5


def test_groups_that_lose_unread_records_are_named(visitor: Visitor, ottla_topic: Topic) -> None:
    old_ms = int(time.time() * 1000) - 7 * DAY_MS + 3_600_000
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    # Those of other tests are there, too: the worst are named.
    for _ in range(3001):
        producer.produce(ottla_topic.name, b"x", partition=0, timestamp=old_ms)
    producer.flush()
    group = f"<b>{ottla_topic.name}"
    consumer = Consumer({"bootstrap.servers": ottla_topic.bootstrap, "group.id": group})
    consumer.commit(offsets=[PartitionAt(ottla_topic.name, 0, 1)], asynchronous=False)
    consumer.close()
    page = visitor.get("/")
    _, _, losing = page.words.partition("Retention removes within a day what they have not read")
    assert f"{group}: 3,000 records" in losing
    assert "<b>" not in page.text
