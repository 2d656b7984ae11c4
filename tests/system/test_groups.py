"""Consumer groups as stock clients see them: librdkafka, and kafka-python beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer

WITHIN_S = 60
PARTITIONS = 4
SHORT_SESSIONS = ("--config", "group.min.session.timeout.ms=100")


class Reader:
    """A consumer that notes which partitions it is given and which are taken from it."""

    def __init__(self, bootstrap: str, group: str, **settings: Any) -> None:
        self.given: list[list[int]] = []
        self.taken: list[list[int]] = []
        self.read = 0
        self.client = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 200,
                "topic.metadata.refresh.interval.ms": 1_000,
                **settings,
            }
        )

    def subscribe(self, topic: str) -> Reader:
        self.client.subscribe(
            [topic],
            on_assign=lambda _, partitions: self.given.append(numbers(partitions)),
            on_revoke=lambda _, partitions: self.taken.append(numbers(partitions)),
        )
        return self

    def poll(self) -> None:
        message = self.client.poll(0.05)
        if message is not None and message.error() is None:
            self.read += 1

    @property
    def owns(self) -> set[int]:
        return {each.partition for each in self.client.assignment()}

    def committed(self, topic: str) -> list[int]:
        asked = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        return [each.offset for each in self.client.committed(asked, timeout=30)]


def numbers(partitions: list[Any]) -> list[int]:
    return sorted(each.partition for each in partitions)


def until(condition: Callable[[], bool], *readers: Reader) -> None:
    """Polls the readers until it is so."""
    end = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < end, [(one.owns, one.read) for one in readers]
        for reader in readers:
            reader.poll()


@contextmanager
def readers(bootstrap: str, group: str, *each: dict[str, Any]) -> Iterator[list[Reader]]:
    made = [Reader(bootstrap, group, **settings) for settings in each]
    try:
        yield made
    finally:
        for reader in made:
            reader.client.close()


def fill(bootstrap: str, topic: str, count: int) -> None:
    """The topic with `count` records in each partition."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    if topic not in admin.list_topics(timeout=30).topics:
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count * PARTITIONS):
        producer.produce(topic, b"x" * 50, partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def test_two_members_share_and_the_rest_takes_over(broker: Any) -> None:
    fill(broker.bootstrap, "shared", 10)
    with readers(broker.bootstrap, "shared", {}, {}) as (first, second):
        first.subscribe("shared")
        until(lambda: first.read == 40, first)
        first.client.commit(asynchronous=False)
        second.subscribe("shared")
        until(lambda: len(first.owns) == len(second.owns) == 2, first, second)
        assert first.owns | second.owns == {0, 1, 2, 3}
        assert second.committed("shared") == [10] * 4
        first.client.unsubscribe()
        until(lambda: len(second.owns) == 4, first, second)


def test_a_cooperative_member_keeps_what_it_may_keep(broker: Any) -> None:
    fill(broker.bootstrap, "cooperative", 5)
    sticky = {"partition.assignment.strategy": "cooperative-sticky"}
    with readers(broker.bootstrap, "cooperative", sticky, sticky) as (first, second):
        first.subscribe("cooperative")
        until(lambda: first.read == 20, first)
        second.subscribe("cooperative")
        until(lambda: len(first.owns) == len(second.owns) == 2, first, second)
        assert [len(partitions) for partitions in first.taken] == [2]
        assert set(first.taken[0]) == second.owns


def test_offsets_and_members_are_there_after_a_kill(new_broker: Any) -> None:
    running = new_broker()
    fill(running.bootstrap, "kept", 25)
    static = {"group.instance.id": "one", "session.timeout.ms": 60_000}
    with readers(running.bootstrap, "kept", static) as (reader,):
        reader.subscribe("kept")
        until(lambda: reader.read == 100, reader)
        reader.client.commit(asynchronous=False)
        running.kill()
        running.start()
        fill(running.bootstrap, "kept", 1)
        until(lambda: reader.read == 104, reader)
        # The generation went on: nothing was revoked from the member or assigned again.
        assert (reader.given, reader.taken) == ([[0, 1, 2, 3]], [])
        reader.client.commit(asynchronous=False)
        assert reader.committed("kept") == [26] * 4
    with readers(running.bootstrap, "kept", static) as (successor,):
        successor.subscribe("kept")
        until(lambda: len(successor.owns) == 4, successor)
        fill(running.bootstrap, "kept", 1)
        until(lambda: successor.read == 4, successor)


def test_a_static_member_that_comes_back_disturbs_nobody(broker: Any) -> None:
    fill(broker.bootstrap, "static", 5)
    names = [{"group.instance.id": name, "session.timeout.ms": 60_000} for name in ("a", "b")]
    with readers(broker.bootstrap, "static", *names) as (first, second):
        first.subscribe("static")
        second.subscribe("static")
        until(lambda: len(first.owns) == len(second.owns) == 2, first, second)
        had, changes = second.owns, (len(first.given), len(first.taken))
        second.client.close()
        with readers(broker.bootstrap, "static", names[1]) as (again,):
            again.subscribe("static")
            until(lambda: again.owns == had, first, again)
        assert (len(first.given), len(first.taken)) == changes


def test_a_former_owner_cannot_commit(new_broker: Any) -> None:
    running = new_broker(*SHORT_SESSIONS)
    fill(running.bootstrap, "fenced", 5)
    slow = {"session.timeout.ms": 1_000, "max.poll.interval.ms": 1_000}
    with readers(running.bootstrap, "fenced", slow, {}) as (first, second):
        first.subscribe("fenced")
        until(lambda: first.read == 20, first)
        old = [TopicPartition("fenced", number, 3) for number in range(PARTITIONS)]
        second.subscribe("fenced")
        # The first is asked to join again and does not: it is out.
        until(lambda: len(second.owns) == 4, second)
        with pytest.raises(KafkaException):
            first.client.commit(offsets=old, asynchronous=False)
        assert second.committed("fenced") == [-1001] * 4


def test_kafka_python_is_served_as_well(broker: Any) -> None:
    fill(broker.bootstrap, "python", 5)
    settings: dict[str, Any] = {
        "bootstrap_servers": broker.bootstrap,
        "group_id": "python",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
    }
    consumer = KafkaConsumer("python", **settings)
    count, end = 0, time.monotonic() + WITHIN_S
    while count < 20:
        assert time.monotonic() < end
        count += sum(map(len, consumer.poll(timeout_ms=200).values()))
    consumer.commit()
    consumer.close()
    with readers(broker.bootstrap, "python", {}) as (reader,):
        assert reader.committed("python") == [5] * 4
