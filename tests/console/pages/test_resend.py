"""All records that match are sent again, once they were counted."""

from __future__ import annotations

import html
import re
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as PartitionAt
from tests.console.served_console import Visitor

from ottla.client.admin.records import delete_records
from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.console.pages import resend
from ottla.testing import Topic


@pytest.fixture
def target(ottla_topic: Topic) -> str:
    name = f"t-{uuid4().hex}"
    with Client(ottla_topic.bootstrap) as client:
        create_topics(client, [NewTopic(name, 1, 1)])
    return name


def produce(topic: Topic, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": topic.bootstrap})
    for value in values:
        producer.produce(topic.name, value, b"\xffkey", partition=0, headers=[("h", b"\x00")])
    producer.flush()


def read(bootstrap: str, name: str, count: int) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": uuid4().hex})
    consumer.assign([PartitionAt(name, 0, 0)])
    found: list[Any] = consumer.consume(count, 10)
    consumer.close()
    return found


def form_of(page: str) -> tuple[str, str]:
    """Where the form goes, and the count that it has."""
    action = re.search(r'action="(/topics/[^"]*send-again[^"]*)"', page)
    count = re.search(r'name="count" value="(\d+)"', page)
    assert action is not None
    assert count is not None
    return html.unescape(action[1]), count[1]


def test_what_was_counted_is_sent_and_nothing_that_came_later(
    visitor: Visitor, ottla_topic: Topic, target: str
) -> None:
    produce(ottla_topic, b"one 1", b"two", b"one \xfe")
    page = visitor.get(f"/topics/{ottla_topic.name}/send-again?text=one")
    assert "2 records match the filter" in page.words
    action, count = form_of(page.text)
    produce(ottla_topic, b"one that is late")
    done = visitor.post(action, target=target, count=count)
    assert f"Sent 2 records of {ottla_topic.name} to {target}." in done.words
    found = read(ottla_topic.bootstrap, target, 2)
    assert [each.value() for each in found] == [b"one 1", b"one \xfe"]
    assert [each.key() for each in found] == [b"\xffkey"] * 2
    assert found[0].headers() == [("h", b"\x00")]


def test_nothing_is_sent_if_it_is_not_what_was_counted(
    visitor: Visitor, ottla_topic: Topic, target: str
) -> None:
    produce(ottla_topic, b"a", b"b", b"c")
    action, count = form_of(visitor.get(f"/topics/{ottla_topic.name}/send-again").text)
    with Client(ottla_topic.bootstrap) as client:
        delete_records(client, {TopicPartition(ottla_topic.name, 0): 1})
    late = visitor.post(action, target=target, count=count)
    assert late.status == 409
    assert "3 records were counted, and 2 are there now" in late.words
    assert visitor.post(action, target="no-such", count=count).status == 404
    assert visitor.post(action, target=target, count="").status == 400
    assert visitor.post(action.partition("?")[0], target=target, count=2).status == 400
    assert "no records" in visitor.get(f"/topics/{target}/messages").words


def test_too_many_are_refused(
    visitor: Visitor, ottla_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(ottla_topic, b"a", b"b", b"c")
    monkeypatch.setattr(resend, "MAX_RECORDS", 2)
    found = visitor.get(f"/topics/{ottla_topic.name}/send-again")
    assert found.status == 400
    assert "most 2 records" in found.words
