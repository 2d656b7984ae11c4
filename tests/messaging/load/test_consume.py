"""Each record is counted once, and reading ends where the options say."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, KafkaError

from ottla.client.errors import RefusedError
from ottla.client.topic_partition import TopicPartition
from ottla.messaging.librdkafka import LibrdkafkaError, RejectedSettingsError
from ottla.messaging.load import consume as bench_consume
from ottla.messaging.load.consume import consume_load, consumer_of
from ottla.messaging.load.meter import Meter


class Event:
    """A record of 10 bytes, the end of a partition, or an error."""

    def __init__(
        self, partition: int, offset: int, *, code: int | None = None, age_ms: int | None = None
    ) -> None:
        self._position = partition, offset
        self._error = None if code is None else KafkaError(code, "broken")
        self._age_ms = age_ms

    def error(self) -> KafkaError | None:
        return self._error

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return self._position[0]

    def offset(self) -> int:
        return self._position[1]

    def value(self) -> bytes:
        return b"12345678"

    def key(self) -> bytes | None:
        return b"k2" if self._position[1] % 2 == 0 else None

    def timestamp(self) -> tuple[int, int]:
        if self._age_ms is None:
            return TIMESTAMP_NOT_AVAILABLE, -1
        return TIMESTAMP_CREATE_TIME, time.time_ns() // 1_000_000 - self._age_ms


class Client:
    """A consumer that gives these polls, and then nothing."""

    def __init__(self, *polls: list[Event]) -> None:
        self.polls = list(polls)
        self.asked: list[int] = []
        self.assigned: list[tuple[int, int]] = []
        self.is_closed = False

    def assign(self, positions: list[Any]) -> None:
        self.assigned = [(each.partition, each.offset) for each in positions]

    def consume(self, most: int, timeout_s: float) -> list[Event]:
        self.asked.append(most)
        return self.polls.pop(0) if self.polls else []

    def close(self) -> None:
        self.is_closed = True


def run(
    monkeypatch: pytest.MonkeyPatch, client: Client, ends: tuple[int, int], **options: Any
) -> tuple[Meter, bool]:
    keys = [TopicPartition("t", 0), TopicPartition("t", 1)]
    monkeypatch.setattr(bench_consume, "consumer_of", lambda settings: client)
    monkeypatch.setattr(bench_consume, "end_offsets", lambda *_: dict(zip(keys, ends, strict=True)))
    monkeypatch.setattr(bench_consume, "first_offsets", lambda *_: dict.fromkeys(keys, 2))
    given = {"records": None, "for_s": None, "follow": False} | options
    try:
        nothing: Any = None
        meter = Meter(time.monotonic())
        return meter, consume_load(nothing, {}, keys, meter, lambda: None, **given)
    finally:
        assert client.is_closed


def test_it_reads_what_there_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partition 1 is empty. Records that come meanwhile are not waited for."""
    client = Client([Event(0, 2), Event(0, 3)], [Event(0, 4)])
    meter, is_interrupted = run(monkeypatch, client, (5, 2))
    assert (meter.records, meter.size_bytes, is_interrupted) == (3, 28, False)
    assert client.assigned == [(0, 2)]
    assert meter.measured("t").latency_ms is None


def test_an_end_without_a_record_ends_its_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last offsets of a partition may be markers, or compacted away."""
    end = KafkaError._PARTITION_EOF
    client = Client([Event(1, 2), Event(0, 9, code=end)], [Event(1, 7, code=end)])
    meter, _ = run(monkeypatch, client, (9, 7))
    assert (meter.records, client.polls) == (1, [])


def test_an_empty_topic_has_nothing_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    meter, _ = run(monkeypatch, client, (2, 2))
    assert (meter.records, client.asked) == (0, [])


def test_never_more_than_the_records_that_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client([Event(0, 2), Event(0, 3)], [Event(0, 4)], [Event(0, 5)])
    meter, _ = run(monkeypatch, client, (9, 2), records=3)
    assert (meter.records, client.asked) == (3, [3, 1])


def test_follow_reads_new_records_and_measures_their_age(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client([Event(0, 5, age_ms=400), Event(1, 2)], [Event(0, 6, age_ms=400)])
    meter, _ = run(monkeypatch, client, (5, 2), records=3, follow=True)
    assert client.assigned == [(0, 5), (1, 2)]
    assert meter.records == 3
    latencies = meter.measured("t").latency_ms
    assert latencies is not None
    assert (latencies["p50"] or 0) >= 390, "400, in a bucket of the histogram"


def test_follow_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client([Event(0, 5)])
    meter, is_interrupted = run(monkeypatch, client, (5, 2), for_s=0.0, follow=True)
    assert (meter.records, is_interrupted) == (1, False)


def test_records_that_do_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_consume, "STALL_TIMEOUT_S", -1.0)
    with pytest.raises(LibrdkafkaError, match="no records arrived for -1 s; read 1"):
        run(monkeypatch, Client([Event(0, 2)]), (9, 2))


def test_an_error_of_a_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client([Event(0, 2, code=KafkaError._BAD_MSG)])
    with pytest.raises(LibrdkafkaError, match="cannot continue to read: "):
        run(monkeypatch, client, (9, 2))
    client = Client([Event(0, 2, code=KafkaError.TOPIC_AUTHORIZATION_FAILED)])
    with pytest.raises(RefusedError) as refused:
        run(monkeypatch, client, (9, 2))
    assert refused.value.lacking == ("Read", "topic", "t")


def test_a_setting_that_librdkafka_rejects() -> None:
    with pytest.raises(
        RejectedSettingsError, match=r"cannot consume with these settings: .*no\.such"
    ):
        consumer_of({"no.such.setting": "1"})
