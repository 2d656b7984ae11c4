"""The journey of a message as a page."""

from __future__ import annotations

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as PartitionAt
from tests.console.served_console import Visitor

from ottla.console.pages.journey import LATE_AGAIN_S, NEW_AGAIN_S, NEW_MS, again_s
from ottla.testing import Topic

EVIL = "<script>alert(1)</script>"


def test_a_message_is_followed_until_it_is_read(visitor: Visitor, ottla_topic: Topic) -> None:
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap, "client.id": EVIL})
    for _ in range(2):
        producer.produce(ottla_topic.name, EVIL, EVIL)
    producer.flush()
    group = f"{EVIL}{ottla_topic.name}"
    consumer = Consumer({"bootstrap.servers": ottla_topic.bootstrap, "group.id": group})
    consumer.commit(offsets=[PartitionAt(ottla_topic.name, 0, 1)], asynchronous=False)
    page = f"/topics/{ottla_topic.name}/messages/0/1"
    assert f"{page}/journey" in visitor.get(page).text
    waiting = visitor.get(f"{page}/journey")
    assert "Not read by all yet: this page follows it." in waiting.words
    assert "has not read it" in waiting.words
    assert 'hx-trigger="every 1s"' in waiting.text
    consumer.commit(offsets=[PartitionAt(ottla_topic.name, 0, 2)], asynchronous=False)
    consumer.close()
    read = visitor.get(f"{page}/journey")
    assert "Every group of its partition has passed it." in read.words
    assert "hx-trigger" not in read.text
    for each in (waiting, read):
        assert "<svg" in each.text
        assert "<script>alert" not in each.text
        for step in ("Published", "Appended", "Replicated", "Retention"):
            assert step in each.words


def test_a_message_that_waits_for_long_is_followed_less_often() -> None:
    assert again_s(None, 7) == again_s(1000, 1000 + NEW_MS - 1) == NEW_AGAIN_S
    assert again_s(1000, 1000 + NEW_MS) == LATE_AGAIN_S


def test_a_message_that_is_not_written_yet(visitor: Visitor, ottla_topic: Topic) -> None:
    found = visitor.get(f"/topics/{ottla_topic.name}/messages/0/7/journey")
    assert found.status == 200
    assert "the log ends at offset 0" in found.words
    assert visitor.get(f"/topics/{ottla_topic.name}/messages/9/7/journey").status == 404
