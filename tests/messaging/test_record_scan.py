"""Reading records for somebody who looks at them."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer

from ottla.client.topic_partition import TopicPartition
from ottla.messaging.record_scan import RecordScan, RecordSource, RecordTail, one_record
from ottla.testing import Topic

WITHIN_S = 30.0


def produce(topic: Topic, values: list[tuple[int, bytes]]) -> None:
    producer = Producer({"bootstrap.servers": topic.bootstrap, "message.max.bytes": 9_000_000})
    for number, (partition, value) in enumerate(values):
        producer.produce(topic.name, value, partition=partition, timestamp=1000 + number)
    assert producer.flush(WITHIN_S) == 0


def value(record: Any) -> bytes:
    data: bytes = record.value()
    return data


def all_of(scan: RecordScan, most: int | None = None) -> list[Any]:
    found: list[Any] = []
    until_s = time.monotonic() + WITHIN_S
    while not scan.is_done and (most is None or len(found) < most):
        assert time.monotonic() < until_s
        found += scan.step(0.5, most)
    return found


@pytest.mark.ottla_topic(partitions=2)
def test_each_record_of_the_spans_is_looked_at_once(ottla_topic: Topic) -> None:
    produce(ottla_topic, [(number % 2, b"%d" % number) for number in range(200)])
    zero, one = (TopicPartition(ottla_topic.name, number) for number in range(2))
    spans = {zero: (10, 60), one: (0, 100)}
    settings = {"bootstrap.servers": ottla_topic.bootstrap}
    wanted = {b"%d" % (2 * n) for n in range(10, 60)} | {b"%d" % (2 * n + 1) for n in range(100)}
    for newest_first in (False, True):
        scan = RecordScan(settings, spans, value, newest_first=newest_first)
        assert scan.total_offsets == 150
        assert scan.passed_offsets == 0
        found = all_of(scan)
        scan.close()
        assert len(found) == 150
        assert set(found) == wanted
        assert scan.looked_at == scan.passed_offsets == 150
        assert scan.rest == {}


@pytest.mark.ottla_topic(partitions=2)
def test_the_newest_come_first_and_what_is_left_is_known(ottla_topic: Topic) -> None:
    produce(ottla_topic, [(number % 2, b"%d" % number) for number in range(200)])
    zero, one = (TopicPartition(ottla_topic.name, number) for number in range(2))
    settings = {"bootstrap.servers": ottla_topic.bootstrap}
    scan = RecordScan(settings, {zero: (0, 100), one: (0, 100)}, value, newest_first=True)
    found = scan.step(5.0, 16)
    scan.close()
    # One offset of each partition, as nothing is known of their size, then eight, of which the
    # oldest are left out.
    assert found == [b"%d" % number for number in range(199, 183, -1)]
    assert scan.rest == {zero: (0, 92), one: (0, 92)}


class FewEvents(RecordSource):
    """Gives seven of them in a call."""

    def consume(self, most: int) -> list[Any]:
        return super().consume(min(most, 7))


@pytest.mark.ottla_topic(partitions=40)
def test_a_window_of_many_partitions_takes_several_steps(ottla_topic: Topic) -> None:
    """Each returns what it has read whole. Nothing is lost where a scan stops between two steps."""
    produce(ottla_topic, [(number % 40, b"%d" % number) for number in range(400)])
    spans = {TopicPartition(ottla_topic.name, number): (0, 10) for number in range(40)}
    settings = {"bootstrap.servers": ottla_topic.bootstrap}
    found: list[bytes] = []
    until_s = time.monotonic() + WITHIN_S
    while spans:
        assert time.monotonic() < until_s
        scan = RecordScan(settings, spans, value, newest_first=True)
        assert scan.unread == len(spans)
        # Few events in a call: most steps end in the middle of a window.
        scan._source = FewEvents(settings)
        while scan.looked_at < 30 and not scan.is_done:
            assert time.monotonic() < until_s
            found += scan.step(0.0001, 25)
        spans = {key: (begin, end) for key, (begin, end) in scan.rest.items() if begin < end}
        scan.close()
    assert sorted(map(int, found)) == [*range(400)]


class OneEvent:
    """The last record of a partition, and then nothing."""

    record_bytes = 1.0

    def __init__(self) -> None:
        record: Any = SimpleNamespace(
            error=lambda: None, topic=lambda: "t", partition=lambda: 0, offset=lambda: 9,
            timestamp=lambda: (1, 9), value=lambda: b"9",
        )  # fmt: skip
        self.events = [record]
        self.assigned: list[int] = []

    def assign(self, offsets: dict[TopicPartition, int]) -> None:
        self.assigned += offsets.values()

    def drop(self, _keys: object) -> None:
        pass

    def poll(self) -> list[Any]:
        some, self.events = self.events, []
        return some


def test_what_was_found_is_returned_although_the_next_window_has_begun() -> None:
    """Else it would be lost where the scan stops: what is left begins before it."""
    where = TopicPartition("t", 0)
    settings = {"bootstrap.servers": "127.0.0.1:1"}
    scan: Any = RecordScan(settings, {where: (0, 10)}, value, newest_first=True)
    real, scan._source = scan._source, OneEvent()
    found = scan.step(0.05, 25)
    assert scan._source.assigned == [9, 1]
    assert (found, scan.rest) == ([b"9"], {where: (0, 9)})
    scan._source = real
    scan.close()


def test_a_search_stops_with_enough_and_goes_on(ottla_topic: Topic) -> None:
    produce(ottla_topic, [(0, b"%d" % number) for number in range(5000)])
    key = TopicPartition(ottla_topic.name, 0)
    scan = RecordScan(
        {"bootstrap.servers": ottla_topic.bootstrap},
        {key: (0, 5000)},
        value,
        lambda record: record.value().endswith(b"99"),
    )
    first = all_of(scan, 1)
    assert first[0] == b"99"
    assert first + all_of(scan) == [b"%d" % number for number in range(99, 5000, 100)]
    scan.close()
    assert scan.step(1.0) == []


def test_large_values_are_not_kept(ottla_topic: Topic) -> None:
    large = b"x" * 900_000
    produce(ottla_topic, [(0, large)] * 20)
    key = TopicPartition(ottla_topic.name, 0)
    settings = {"bootstrap.servers": ottla_topic.bootstrap}
    scan = RecordScan(settings, {key: (0, 20)}, lambda each: len(each.value()), newest_first=True)
    assert all_of(scan) == [900_000] * 20
    scan.close()


def test_one_record_or_none(ottla_topic: Topic) -> None:
    produce(ottla_topic, [(0, b"a"), (0, b"b")])
    key = TopicPartition(ottla_topic.name, 0)
    settings = {"bootstrap.servers": ottla_topic.bootstrap}
    found = one_record(settings, key, 1)
    assert found is not None
    assert found.value() == b"b"
    assert one_record(settings, key, 2) is None


def test_a_tail_shows_the_newest_and_counts_what_it_skips(ottla_topic: Topic) -> None:
    produce(ottla_topic, [(0, b"before")])
    key = TopicPartition(ottla_topic.name, 0)
    tail = RecordTail({"bootstrap.servers": ottla_topic.bootstrap}, {key: 1}, value)
    produce(ottla_topic, [(0, b"%d" % number) for number in range(500)])
    found: list[bytes] = []
    until_s = time.monotonic() + WITHIN_S
    while tail.looked_at < 500 and time.monotonic() < until_s:
        found += tail.step(0.3, 10)
    assert found[-10:] == [b"%d" % number for number in range(490, 500)]
    assert len(found) + tail.skipped == 500
    assert not tail.is_away
    tail.close()
    assert tail.step(0.1, 10) == []


@pytest.mark.ottla_topic(partitions=2)
def test_of_a_window_with_many_that_match_only_the_newest_are_kept(ottla_topic: Topic) -> None:
    """And what is left out is said to be left."""
    produce(ottla_topic, [(number % 2, b"%d" % number) for number in range(400)])
    zero, one = (TopicPartition(ottla_topic.name, number) for number in range(2))
    settings = {"bootstrap.servers": ottla_topic.bootstrap}

    def is_old(record: Any) -> bool:
        return bool(int(record.value()) < 380)

    spans = {zero: (0, 200), one: (0, 200)}
    scan = RecordScan(settings, spans, value, is_old, newest_first=True)
    found: list[bytes] = []
    while len(found) < 5:
        found += scan.step(5.0, 5 - len(found))
    rest = scan.rest
    scan.close()
    assert found == [b"%d" % number for number in range(379, 374, -1)]
    # Those that were shown last and those of the same window that were not.
    assert rest == {zero: (0, 188), one: (0, 187)}
