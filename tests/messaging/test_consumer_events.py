"""What the events of a consumer that are no records mean."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from ottla.client.client import Client
from ottla.client.errors import RefusedError
from ottla.client.topic_partition import TopicPartition
from ottla.messaging.consumer_events import is_end
from ottla.messaging.key_scan import KeyScan
from ottla.messaging.librdkafka import LibrdkafkaError
from ottla.messaging.load.consume import consume_load
from ottla.messaging.load.meter import Meter
from ottla.messaging.record_scan import RecordScan, RecordTail
from ottla.testing import Broker, Security

WITHIN_S = 30.0


class Event:
    """An error of librdkafka."""

    def __init__(self, code: int) -> None:
        self._error = KafkaError(code)

    def error(self) -> KafkaError:
        return self._error

    def topic(self) -> str:
        return "t"


def test_the_end_of_a_partition() -> None:
    assert is_end(Event(KafkaError._PARTITION_EOF))


def test_a_coordinator_matters_to_those_in_a_group() -> None:
    denied = Event(KafkaError.GROUP_AUTHORIZATION_FAILED)
    assert not is_end(denied)
    with pytest.raises(RefusedError) as refused:
        is_end(denied, "g")
    assert refused.value.lacking == ("Read", "group", "g")


def test_what_ends_the_reading() -> None:
    with pytest.raises(RefusedError) as refused:
        is_end(Event(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert refused.value.lacking == ("Read", "topic", "t")
    with pytest.raises(LibrdkafkaError, match="topic 't' was deleted"):
        is_end(Event(KafkaError.UNKNOWN_TOPIC_OR_PART))
    with pytest.raises(LibrdkafkaError, match="cannot continue to read"):
        is_end(Event(KafkaError._FATAL))


def produce(settings: Mapping[str, Any], *values: bytes) -> None:
    producer = Producer({**settings})
    for value in values:
        producer.produce("orders", value, b"k", partition=0)
    assert producer.flush(WITHIN_S) == 0


def read_all(scan: RecordScan | KeyScan) -> list[bytes]:
    found: list[bytes] = []
    until_s = time.monotonic() + WITHIN_S
    while not scan.is_done and time.monotonic() < until_s:
        found += scan.step(0.5)
    scan.close()
    return found


def test_readers_without_a_group_need_no_permission_for_one() -> None:
    """Librdkafka asks for the coordinator of the group whose name a consumer must have."""
    security = Security(
        users={"app": "secret"}, acls=["app Read topic orders", "app Write topic orders"]
    )
    with Broker(security=security) as broker:
        broker.create_topic("orders")
        settings = broker.client("app")
        produce(settings, b"0", b"1")
        where = TopicPartition("orders", 0)

        def value(record: Any) -> bytes:
            # The answer about the coordinator has come by then.
            time.sleep(0.1)
            data: bytes = record.value()
            return data

        assert read_all(RecordScan(settings, {where: (0, 2)}, value, newest_first=True)) == [
            b"1",
            b"0",
        ]
        lent = partial(Client, broker.bootstrap, settings)
        assert read_all(KeyScan(settings, lent, b"k", 1, {where: (0, 2)}, value)) == [b"0", b"1"]
        tail = RecordTail(settings, {where: 2}, value)
        assert tail.step(0.5, 10) == []
        produce(settings, b"2")
        until_s = time.monotonic() + WITHIN_S
        found: list[bytes] = []
        while not found and time.monotonic() < until_s:
            found = tail.step(0.5, 10)
        tail.close()
        assert found == [b"2"]
        with Client(broker.bootstrap, settings) as client:
            meter = Meter(time.monotonic())
            consume_load(
                client,
                settings,
                [where],
                meter,
                lambda: None,
                records=None,
                for_s=0.5,
                follow=True,
            )
