"""Trends of groups and topics, from what the console has seen while it ran."""

from __future__ import annotations

import json
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as PartitionAt
from tests.console.served_console import FreshAccess, Visitor, serving

from ottla.client.admin.committed_offsets import commit_offsets
from ottla.client.admin.offsets import known_offsets
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.console.console import Console
from ottla.console.history import History
from ottla.console.pages.group import MAX_OWNED, owned
from ottla.console.sampler import END, LAG, LEAST_PAUSE_S, Sampler
from ottla.testing import SharedBroker, Topic


@pytest.fixture
def sampler(ottla_session_broker: SharedBroker) -> Sampler:
    """It takes a sample when the test says so."""
    return Sampler(FreshAccess(ottla_session_broker.bootstrap, {}, "tests"), History())


@pytest.fixture
def visitor(sampler: Sampler) -> Iterator[Visitor]:
    with serving(Console(sampler._access, sampler=sampler)) as found:
        yield found


def produce(topic: Topic, count: int) -> None:
    producer = Producer({"bootstrap.servers": topic.bootstrap})
    for number in range(count):
        producer.produce(topic.name, str(number), partition=0)
    producer.flush()


def test_a_group_and_its_topic_have_lines_and_a_trend(
    visitor: Visitor, sampler: Sampler, ottla_topic: Topic
) -> None:
    group = f"chart-{ottla_topic.name}"
    produce(ottla_topic, 7)
    consumer = Consumer({"bootstrap.servers": ottla_topic.bootstrap, "group.id": group})
    consumer.commit(offsets=[PartitionAt(ottla_topic.name, 0, 3)], asynchronous=False)
    consumer.close()
    page = f"/group?name={group}"
    assert "Lag in time –" in visitor.get(page).words
    sampler.sample()
    produce(ottla_topic, 100)
    sampler.sample()
    shown = visitor.get(page)
    assert "↑" in shown.words
    assert "Lag in time –" not in shown.words
    assert f"/charts/group?name={group}" in shown.text
    found = json.loads(visitor.get(f"/charts/group?name={group}").body)
    assert found["lines"]["records"][-2:] == [4, 104]
    assert found["lines"]["ms"][-1] >= 0
    assert len(found["times_s"]) == len(found["lines"]["ms"])
    rates = json.loads(visitor.get(f"/charts/topic?name={ottla_topic.name}").body)
    assert rates["lines"]["records/s"][-1] > 0
    assert "Records/s" in visitor.get("/topics").words
    assert "/charts/topic" in visitor.get(f"/topics/{ottla_topic.name}/partitions").text


def test_a_console_without_a_history_draws_nothing(ottla_session_broker: SharedBroker) -> None:
    access = FreshAccess(ottla_session_broker.bootstrap, {}, "tests")
    with serving(Console(access)) as visitor:
        assert visitor.get("/charts/group?name=x").status == 404
        assert "Records/s" not in visitor.get("/topics").words


def test_the_sampler_looks_again_and_stops(sampler: Sampler) -> None:
    sampler.start()
    sampler.watch("somebody")
    sampler.stop()
    assert not sampler._thread.is_alive()


def test_a_leader_that_is_away_for_a_moment_makes_no_rate(
    sampler: Sampler, ottla_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(ottla_topic, 100)
    first = TopicPartition(ottla_topic.name, 0)
    with Client(ottla_topic.bootstrap) as client:
        commit_offsets(client, f"away-{ottla_topic.name}", {first: 40})

    def without_it(*arguments: Any, **known: Any) -> Any:
        (ends,), why = known_offsets(*arguments, **known)
        return [{key: end for key, end in ends.items() if key != first}], why

    for asked in (without_it, known_offsets, without_it, known_offsets):
        monkeypatch.setattr("ottla.console.sampler.known_offsets", asked)
        sampler.sample()
    assert sampler.history.read(END, ottla_topic.name)[1] == [None, 100, 100, 100]
    assert sampler.history.read(LAG, f"away-{ottla_topic.name}")[1] == [None, 60, 60, 60]


def test_many_groups_that_are_opened_have_the_cluster_asked_no_more_often(
    sampler: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused: list[float] = []

    class Stopping(Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            paused.append(timeout)
            sampler.watch(f"another-{len(paused)}")
            if len(paused) == 3:
                self.set()
            return self.is_set()

    monkeypatch.setattr(sampler, "_stopping", Stopping())
    monkeypatch.setattr(sampler, "sample", lambda: None)
    sampler._loop()
    assert [each >= LEAST_PAUSE_S for each in paused] == [True] * 3


def test_what_a_member_owns_is_named_in_ranges() -> None:
    keys = [TopicPartition("b", number) for number in (5, 0, 1, 2)]
    assert owned([*keys, TopicPartition("a", 3)]) == [("a", "3"), ("b", "0-2, 5")]
    many = [TopicPartition(f"t{number:03d}", 0) for number in range(MAX_OWNED + 2)]
    assert owned(many)[-1] == ("", "and 2 more topics")
