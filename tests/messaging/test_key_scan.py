"""Reading the records with one key."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Producer

from ottla.client.admin.key_offsets import key_offsets
from ottla.client.admin.offsets import LATEST, known_offsets
from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.client.topic_partition import TopicPartition
from ottla.messaging import key_scan
from ottla.messaging.key_scan import KeyScan
from ottla.testing import Topic

WITHIN_S = 30.0


def scan_of(topic: Topic, spans: Any, **options: Any) -> KeyScan:
    @contextmanager
    def lent() -> Iterator[Client]:
        with Client(topic.bootstrap) as client:
            yield client

    settings = {"bootstrap.servers": topic.bootstrap}
    return KeyScan(settings, lent, b"k7", 2, spans, place, **options)


def place(record: Any) -> tuple[int, int, bytes]:
    return record.partition(), record.offset(), record.value()


def produce(topic: Topic, count: int, **settings: Any) -> None:
    producer = Producer({"bootstrap.servers": topic.bootstrap, **settings})
    for number in range(count):
        producer.produce(
            topic.name, b"%d" % number, b"k%d" % (number // 2 % 10), partition=number % 2,
            timestamp=1000 + number,
        )  # fmt: skip
    assert producer.flush(WITHIN_S) == 0


def all_of(scan: KeyScan, most: int | None = None) -> list[Any]:
    found: list[Any] = []
    until_s = time.monotonic() + WITHIN_S
    while not scan.is_done:
        assert time.monotonic() < until_s
        found += scan.step(0.5, most)
    scan.close()
    return found


@pytest.mark.ottla_topic(partitions=2)
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_the_records_with_the_key_are_read(ottla_topic: Topic, compression: str) -> None:
    produce(ottla_topic, 4000, **{"compression.type": compression})
    zero, one = (TopicPartition(ottla_topic.name, number) for number in range(2))
    spans = {zero: (10, 1000), one: (0, 2000)}
    wanted = [(0, at, b"%d" % (2 * at)) for at in range(17, 1000, 10)]
    wanted += [(1, at, b"%d" % (2 * at + 1)) for at in range(7, 2000, 10)]
    for options in ({}, {"newest_first": True}):
        scan = scan_of(ottla_topic, spans, **options)
        assert (scan.total_offsets, scan.passed_offsets) == (2990, 0)
        assert sorted(all_of(scan)) == wanted
        assert scan.passed_offsets == 2990
        assert scan.looked_at >= 2990
        assert scan.rest == {}
    chosen = scan_of(ottla_topic, spans, matches=lambda each: each.value().endswith(b"14"))
    assert sorted(all_of(chosen)) == [each for each in wanted if each[2].endswith(b"14")]


@pytest.mark.ottla_topic(partitions=2)
def test_the_newest_first_and_what_is_left(ottla_topic: Topic) -> None:
    produce(ottla_topic, 400)
    zero, one = (TopicPartition(ottla_topic.name, number) for number in range(2))
    scan = scan_of(ottla_topic, {zero: (0, 200), one: (0, 200)}, newest_first=True)
    found = scan.step(10.0, 3)
    # `k7` is in partition 0 by murmur2 and by CRC-32.
    assert [each[:2] for each in found] == [(0, 197), (0, 187), (0, 177)]
    assert scan.rest == {zero: (0, 177), one: (0, 200)}
    assert [each[:2] for each in scan.step(10.0, 1)] == [(0, 167)]
    scan.close()
    assert scan.step(1.0) == []


@pytest.mark.ottla_topic(partitions=2)
@pytest.mark.parametrize(
    ("partitioner", "first"), [("murmur2_random", 0), ("fnv1a_random", 1), (None, 0)]
)
def test_the_partitioner_is_told_by_the_keys_of_other_records(
    ottla_topic: Topic, monkeypatch: pytest.MonkeyPatch, partitioner: str | None, first: int
) -> None:
    """`k7` is in partition 0 by murmur2 and in partition 1 by FNV-1a."""
    asked: list[int] = []

    def noting(client: Any, where: TopicPartition, *rest: Any, **options: Any) -> Any:
        asked.append(where.partition)
        return key_offsets(client, where, *rest, **options)

    monkeypatch.setattr(key_scan, "key_offsets", noting)
    monkeypatch.setattr(key_scan, "SAMPLED_FROM", 0)
    # Without a partitioner: records without keys, which tell nothing.
    settings = {} if partitioner is None else {"partitioner": partitioner}
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap, **settings})
    for number in range(200):
        key = None if partitioner is None else b"k%d" % (number % 40)
        producer.produce(ottla_topic.name, b"v", key)
    assert producer.flush(WITHIN_S) == 0
    with Client(ottla_topic.bootstrap) as client:
        keys = [TopicPartition(ottla_topic.name, number) for number in range(2)]
        (ends,), _ = known_offsets(client, keys, LATEST)
    scan = scan_of(ottla_topic, {where: (0, end) for where, end in ends.items()})
    assert len(all_of(scan)) == (0 if partitioner is None else 5)
    assert list(dict.fromkeys(asked)) == [first, 1 - first]


@pytest.mark.ottla_topic(partitions=2)
def test_records_that_are_far_from_each_other(
    ottla_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_scan, "NEAR", 5)
    produce(ottla_topic, 400)
    zero = TopicPartition(ottla_topic.name, 0)
    scan = scan_of(ottla_topic, {zero: (0, 200)})
    assert [each[1] for each in all_of(scan, 4)] == list(range(7, 200, 10))


def test_metadata_that_are_of_before_are_asked_for_again(ottla_topic: Topic) -> None:
    produce_to = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    produce_to.produce(ottla_topic.name, b"v", b"k7", partition=0)
    assert produce_to.flush(WITHIN_S) == 0
    where = TopicPartition(ottla_topic.name, 0)
    with Client(ottla_topic.bootstrap) as client:
        now = client.metadata([ottla_topic.name])
        away = {number: each._replace(port=1) for number, each in now.brokers.items()}
        for known in (now, replace(now, topics={}), replace(now, brokers=away)):
            found = key_offsets(client, where, b"k7", 0, 1, from_end=False, most=1, known=known)
            assert found.offsets == [0]


def test_a_topic_that_is_gone(ottla_topic: Topic) -> None:
    scan = scan_of(ottla_topic, {TopicPartition("no-such-topic", 0): (0, 5)})
    with pytest.raises(ClientError, match="cannot search no-such-topic-0"):
        scan.step(1.0)
    scan.close()
