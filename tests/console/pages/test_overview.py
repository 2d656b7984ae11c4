"""What is wrong comes first, in words with what to do."""

from __future__ import annotations

import time
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as PartitionAt
from tests.console.served_console import WAIT_S, Visitor, serving

from ottla.client.admin.cluster import PartitionState
from ottla.client.admin.health import Problem
from ottla.client.admin.losses import DAY_MS
from ottla.console import shared_answers
from ottla.console.access import Access
from ottla.console.console import Console
from ottla.console.pages.overview import MAX_LINKS, shown
from ottla.testing import SharedBroker, Topic


def test_a_healthy_broker(visitor: Visitor) -> None:
    words = visitor.get("/").words
    assert "Everything works" in words
    assert "Controller 1 epoch" in words


def test_open_pages_ask_once_for_what_they_share(
    ottla_session_broker: SharedBroker, ottla_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()

    def counted(name: str, function: Any) -> Any:
        def ask(*arguments: Any) -> Any:
            asked[name] += 1
            return function(*arguments)

        return ask

    monkeypatch.setattr(shared_answers, "FRESH_S", WAIT_S)
    for name in ("lags", "listed_groups", "min_in_sync"):
        monkeypatch.setattr(shared_answers, name, counted(name, getattr(shared_answers, name)))
    with serving(Console(Access(ottla_session_broker.bootstrap, {}, "tests"))) as visitor:
        for path in ("/", "/topics", "/groups", "/"):
            assert visitor.get(path).status == 200
        assert asked == {"lags": 1, "listed_groups": 1, "min_in_sync": 1}
        # A change is seen at once.
        visitor.post(f"/topics/{ottla_topic.name}/add-partitions", partitions=3)
        assert visitor.get("/").status == 200
    assert asked["lags"] == 2


def test_a_new_topic_is_asked_for_its_setting_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def settings(_: Any, names: list[str]) -> dict[str, int]:
        asked.append(names)
        return dict.fromkeys(names, 2)

    monkeypatch.setattr(shared_answers, "min_in_sync", settings)
    access = Access("localhost:1", {}, "tests")
    visit: Any = SimpleNamespace(access=access, client=None)
    assert shared_answers.least_in_sync(visit, ["b", "a"]) == {"a": 2, "b": 2}
    assert shared_answers.least_in_sync(visit, ["b", "c"]) == {"a": 2, "b": 2, "c": 2}
    assert asked == [["a", "b"], ["c"]]


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
