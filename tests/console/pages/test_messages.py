"""The records of a topic as a page."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

import pytest
from confluent_kafka import Producer
from tests.console.served_console import Visitor

from ottla.client.client import Client
from ottla.client.question import Question
from ottla.client.topic_partition import TopicPartition
from ottla.console.pages.messages import ROWS, cut
from ottla.console.seen_record import SeenRecord
from ottla.messaging.shown_bytes import shown_in_line
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.testing import Topic

EVIL = "<script>alert(1)</script>"


def produce(topic: Topic, count: int, partitions: int = 1) -> None:
    producer = Producer({"bootstrap.servers": topic.bootstrap})
    for number in range(count):
        value = json.dumps({"n": number, "c": {"id": number % 7}})
        producer.produce(
            topic.name, value, f"k{number % 10}", partition=number % partitions,
            timestamp=1_700_000_000_000 + number, headers=[("h", b"%d" % (number % 3))],
        )  # fmt: skip
    producer.flush()


def offsets(text: str) -> list[tuple[int, int]]:
    return [(int(p), int(o)) for p, o in re.findall(r'/messages/(\d+)/(\d+)"', text)]


@pytest.mark.ottla_topic(partitions=2)
def test_pages_newest_first_show_each_record_once(visitor: Visitor, ottla_topic: Topic) -> None:
    produce(ottla_topic, 230, 2)
    url, seen = f"/topics/{ottla_topic.name}/messages", []
    for _ in range(10):
        page = visitor.get(url)
        found = offsets(page.text)
        assert len(found) <= ROWS
        assert found
        seen += found
        following = re.search(r'id="next" href="([^"]+)"', page.text)
        if following is None:
            break
        url = following[1].replace("&amp;", "&")
    assert seen[:2] == [(1, 114), (0, 114)]
    assert len(seen) == 230
    assert sorted(seen) == [(p, o) for p in range(2) for o in range(115)]


def test_what_is_on_the_next_page_is_not_lost() -> None:
    key, none = TopicPartition("t", 0), shown_in_line(b"", 1)
    rows = [SeenRecord(0, number, 1, none, none, [], 0) for number in range(100, 40, -1)]
    shown, rest = cut(rows, {key: (0, 41)}, {key: (0, 101)}, newest_first=True)
    assert len(shown) == ROWS
    assert rest == {key: (0, 51)}
    rows.reverse()
    shown, rest = cut(rows, {key: (101, 200)}, {key: (41, 200)}, newest_first=False)
    assert [shown[-1].offset, rest] == [90, {key: (91, 200)}]
    _, rest = cut(rows, {}, {key: (41, 101)}, newest_first=False)
    assert rest == {key: (91, 101)}


def test_filters(visitor: Visitor, ottla_topic: Topic) -> None:
    produce(ottla_topic, 100)
    page = f"/topics/{ottla_topic.name}/messages"
    for query, wanted in (
        ("key=k3", [number for number in range(100) if number % 10 == 3]),
        ("text=%22n%22:+9%5B0-4%5D", range(90, 95)),
        ("header=h%3D2&partition=0", [number for number in range(100) if number % 3 == 2]),
        ("json=c.id%3D5", [number for number in range(100) if number % 7 == 5]),
        (
            "key=k3&json=c.id%3D5",
            [number for number in range(100) if number % 10 == 3 and number % 7 == 5],
        ),
        ("start=offset&offset=95", range(95, 100)),
        ("start=time&at=1700000000097", range(97, 100)),
        ("key=nothing", []),
    ):
        found = [offset for _, offset in offsets(visitor.get(f"{page}?{query}").text)]
        assert sorted(found) == [*wanted], query
    assert "1 found; looked at 100 records" in visitor.get(f"{page}?text=%22n%22:+42%2C").words


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("partition=77", "no 77"),
        ("partition=x", "must be a whole number"),
        ("start=offset", "Give the offset"),
        ("start=time&at=soon", "is not a time"),
        ("start=end", "Start must be one of"),
        ("text=(", "is not a regular expression"),
        ("json=a..b", "is not a path in JSON"),
        ("rest=1-2", "is no part of a partition"),
        (f"key={'x' * 2001}", "2000 characters"),
    ],
)
def test_what_cannot_be_asked(visitor: Visitor, ottla_topic: Topic, query: str, why: str) -> None:
    found = visitor.get(f"/topics/{ottla_topic.name}/messages?{query}")
    assert found.status == 400
    assert why in found.words


def test_an_empty_topic(visitor: Visitor, ottla_topic: Topic) -> None:
    assert "There are no records here." in visitor.get(f"/topics/{ottla_topic.name}/messages").words


def test_nothing_in_a_record_is_html(visitor: Visitor, ottla_topic: Topic) -> None:
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    producer.produce(ottla_topic.name, EVIL, EVIL, headers=[(EVIL, EVIL.encode())])
    producer.produce(ottla_topic.name, bytes(range(256)), b"\xff")
    producer.produce(ottla_topic.name, None, None)
    producer.flush()
    for path in ("messages", "messages/0/0", "messages/0/1", "messages/0/2", "messages?form=hex"):
        page = visitor.get(f"/topics/{ottla_topic.name}/{path}")
        assert page.status == 200
        assert "<script>alert" not in page.text, path
    assert EVIL in visitor.get(f"/topics/{ottla_topic.name}/messages/0/0").words
    search = visitor.get(f"/topics/{ottla_topic.name}/messages?key={quote(EVIL)}").text
    assert "<script>alert" not in search


@pytest.mark.parametrize("query", ["start=offset&offset=1000", "start=oldest&rest=0:900-1000"])
def test_a_beginning_beyond_the_end_has_no_offsets(
    visitor: Visitor, ottla_topic: Topic, query: str
) -> None:
    produce(ottla_topic, 5)
    found = visitor.get(f"/topics/{ottla_topic.name}/messages?{query}")
    assert "0 records of 0 offsets" in found.words


def test_headers_that_are_not_utf8_hide_nothing_else(visitor: Visitor, ottla_topic: Topic) -> None:
    def build(messages: Any) -> Any:
        records = [Record(0, 0, b"k", b"evil", (("h\udcff", b"1"),)), Record(1, 0, b"k", b"well")]
        data = messages.PartitionProduceData(index=0, records=build_batch(records))
        topic = messages.TopicProduceData(name=ottla_topic.name, partition_data=(data,))
        return messages.ProduceRequest(
            transactional_id=None, acks=-1, timeout=5000, topic_data=(topic,)
        )

    with Client(ottla_topic.bootstrap, {}, client_id="tests") as client:
        client.ask_broker(1, Question(0, 9, build, 3))
    page = f"/topics/{ottla_topic.name}"
    for path in ("messages", "search", "messages/0/0"):
        found = visitor.get(f"{page}/{path}")
        assert found.status == 200
        assert "a name is not UTF-8" in found.words, path
    assert "Nothing matches." in visitor.get(f"{page}/messages?header=x").words
    assert visitor.get(f"{page}/messages/0/0/journey").status == 200
    assert "is not UTF-8" in json.loads(visitor.get(f"{page}/export").body)["error"]
    sent = visitor.post(f"{page}/messages/0/0/send", target=ottla_topic.name)
    assert sent.status == 409
    assert "a header whose name is not UTF-8" in sent.words


def test_a_time_that_no_request_can_carry(visitor: Visitor, ottla_topic: Topic) -> None:
    found = visitor.get(f"/topics/{ottla_topic.name}/messages?start=time&at={2**63}")
    assert found.status == 400
    assert "is not a time" in found.words
