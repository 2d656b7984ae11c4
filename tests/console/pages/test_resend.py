"""All records that match are sent again, once they were counted."""

from __future__ import annotations

import html
import re
from collections import deque
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as PartitionAt
from tests.console.served_console import Visitor, console_of, serving

from ottla.client.admin.records import delete_records
from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.console.console import MAX_RESENDS
from ottla.console.pages import resend
from ottla.messaging.jsonlines import Outgoing
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


def test_headers_take_memory_too(
    visitor: Visitor, ottla_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    for _ in range(3):
        producer.produce(ottla_topic.name, b"", partition=0, headers=[("h", bytes(20_000))])
    producer.flush()
    monkeypatch.setattr(resend, "MAX_BYTES", 50_000)
    found = visitor.get(f"/topics/{ottla_topic.name}/send-again")
    assert found.status == 400
    assert "and more match" in found.words


def test_few_do_it_at_a_time(ottla_topic: Topic) -> None:
    produce(ottla_topic, b"a")
    console = console_of(ottla_topic.bootstrap)
    with serving(console) as visitor:
        for _ in range(MAX_RESENDS):
            console.resends.acquire()
        refused = visitor.get(f"/topics/{ottla_topic.name}/send-again")
        assert (refused.status, "Nothing was sent" in refused.words) == (503, True)
        console.resends.release()
        for _ in range(2 * MAX_RESENDS):
            assert "1 record matches" in visitor.get(f"/topics/{ottla_topic.name}/send-again").words


class _Producer:
    """Delivers what it has been sent when it is flushed, but for the record `bad`."""

    def __init__(self, bad: int = 0) -> None:
        self.sent = self.delivered = self.most = 0
        self._bad = bad

    @property
    def undelivered(self) -> int:
        return self.sent - self.delivered

    def send(self, _record: Outgoing, _number: int) -> None:
        self.sent += 1
        self.most = max(self.most, self.undelivered)

    def flush(self) -> None:
        self.delivered = self.sent - (self.sent >= self._bad > 0)


def test_few_records_wait_and_none_is_sent_after_one_that_was_not_delivered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resend, "SENT_AT_ONCE_BYTES", 1000)

    def sent(producer: Any) -> int:
        left = deque(Outgoing(None, bytes(400), [], None, None) for _ in range(10))
        resend.send_all(producer, left)
        return len(left)

    well, badly = _Producer(), _Producer(bad=3)
    assert (sent(well), well.sent, well.most) == (0, 10, 2)
    assert (sent(badly), badly.sent, badly.undelivered) == (6, 4, 1)
