"""The list of topics."""

from __future__ import annotations

import re

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as PartitionAt
from tests.console.served_console import Visitor

from ottla.client.admin.lags import GroupLag
from ottla.console.pages.topics import ListedTopic, sort_key
from ottla.testing import Topic


def row(name: str, size_bytes: int | None, lag: int | None) -> ListedTopic:
    worst = None if lag is None else GroupLag("g", name, lag, 1)
    return ListedTopic(name, False, 1, 1, 0, 0, None, size_bytes, worst, 1)


def test_numbers_from_the_largest_and_those_not_known_last() -> None:
    rows = [row("a", None, 5), row("b", 7, None), row("c", 0, 0), row("d", 9, 5)]

    def order(sort: str) -> str:
        return "".join(each.name for each in sorted(rows, key=sort_key(sort)))

    assert order("name") == "abcd"
    assert order("size") == "dbca"
    assert order("lag") == "adcb"


def test_a_topic_with_its_size_and_the_worst_lag(visitor: Visitor, ottla_topic: Topic) -> None:
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    for number in range(7):
        producer.produce(ottla_topic.name, str(number), partition=0)
    producer.flush()
    for group, offset in (("slow", 2), ("fast", 6)):
        settings = {"bootstrap.servers": ottla_topic.bootstrap, "group.id": group}
        consumer = Consumer(settings)
        consumer.commit(offsets=[PartitionAt(ottla_topic.name, 0, offset)], asynchronous=False)
        consumer.close()
    for sort in ("name", "size", "lag", "offsets", "nonsense"):
        found = visitor.get(f"/topics?q={ottla_topic.name.upper()}&sort={sort}").words
        assert re.search(rf"{ottla_topic.name} \d+ 1 7 [\d.]+ k?B 2 5", found), found
    groups = visitor.get(f"/topics/{ottla_topic.name}/groups").words
    assert "slow 1 5 fast 1 1" in groups


def test_no_topic_has_the_part(visitor: Visitor) -> None:
    found = visitor.get("/topics?q=%3Cb%3E")
    assert "No topic's name contains “<b>”" in found.words
    assert "<b>" not in found.text.partition("<main")[2]


def test_a_page_number_that_is_none(visitor: Visitor) -> None:
    assert visitor.get("/topics?page=x").status == 400
    assert visitor.get("/topics?page=99").status == 200
