"""The age of the first unread record, and what has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    KafkaError,
    KafkaException,
)

from ottla.client.topic_partition import TopicPartition
from ottla.messaging import unread_times
from ottla.messaging.librdkafka import LibrdkafkaError, RejectedSettingsError
from ottla.messaging.unread_times import UnreadTimes, ages_ms


class Event:
    """A record, or an error of its partition."""

    def __init__(self, partition: int, at_ms: int | None = None, error: int | None = None) -> None:
        self._partition, self._at_ms, self._error = partition, at_ms, error

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return self._partition

    def timestamp(self) -> tuple[int, int]:
        if self._at_ms is None:
            return TIMESTAMP_NOT_AVAILABLE, 0
        return TIMESTAMP_CREATE_TIME, self._at_ms

    def error(self) -> KafkaError | None:
        return None if self._error is None else KafkaError(self._error)


class Reading:
    """A consumer that returns these events."""

    events: list[list[Event]] = []  # noqa: RUF012

    def __init__(self, settings: Mapping[str, Any]) -> None:
        assert settings["enable.auto.commit"] is False

    def assign(self, places: list[Any]) -> None:
        self.places = places

    def consume(self, _most: int, _timeout_s: float) -> list[Event]:
        return self.events.pop(0) if self.events else []

    def unassign(self) -> None:
        self.places = []

    def close(self) -> None:
        pass


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> UnreadTimes:
    monkeypatch.setattr(unread_times, "Consumer", Reading)
    return UnreadTimes({})


def test_the_first_record_of_each_partition_counts(times: UnreadTimes) -> None:
    Reading.events = [
        [Event(0, 100), Event(0, 200), Event(1, error=KafkaError._TRANSPORT)],
        [Event(1, 300), Event(2), Event(3, error=KafkaError._PARTITION_EOF)],
        [Event(4, error=KafkaError.TOPIC_AUTHORIZATION_FAILED)],
        [Event(0, error=KafkaError._PARTITION_EOF)],
    ]
    positions = {TopicPartition("t", number): 7 for number in range(5)}
    assert times.read(positions) == {("t", 0): 100, ("t", 1): 300}
    # Nothing is waited for once all is known, also that it may not be read.
    assert len(Reading.events) == 1
    assert times.read({}) == {}


def test_settings_that_librdkafka_refuses_are_one_line() -> None:
    with pytest.raises(RejectedSettingsError, match="cannot consume with these settings"):
        UnreadTimes({"no.such.setting": "1"})


def test_a_silent_leader_costs_a_limited_time(
    times: UnreadTimes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unread_times, "WITHIN_S", -1)
    Reading.events = []
    assert times.read({TopicPartition("t", 0): 7}) == {}


def test_ages_of_a_group(times: UnreadTimes) -> None:
    Reading.events = [[Event(1, 400), Event(2, 900)]]
    committed = {TopicPartition("t", number): 5 for number in range(5)}
    lags = {TopicPartition("t", at): lag for at, lag in enumerate((0, 3, 1, 2))}
    assert ages_ms(times, committed, lags, 1000) == {("t", 0): 0, ("t", 1): 600, ("t", 2): 100}


def test_a_consumer_that_fails_is_one_line(times: UnreadTimes) -> None:
    def broken(_most: int, _timeout_s: float) -> list[Event]:
        raise KafkaException(KafkaError(KafkaError._FATAL))

    times._consumer.consume = broken
    with pytest.raises(LibrdkafkaError, match="cannot read the first unread records"):
        times.read({TopicPartition("t", 0): 7})
