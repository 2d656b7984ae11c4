"""Admin.fenceProducers: the request that Java's admin client sends for each transactional id.

It is an InitProducerId without a producer id and epoch, sent again while the coordinator aborts the
open transaction (FenceProducersHandler, KIP-618). The same on Ottla and on Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from tests.system.test_transactions import (
    WAIT_S,
    end_offset,
    new_topic,
    read,
    transactional,
    write,
)
from tests.system.wire import Wire
from tests.system.wire_producer import WireProducer

from components import fixture
from ottla.protocol.errors import ErrorCode

kafka_jars, apache_kafka = fixture.kafka_jars, fixture.apache_kafka
NO_PRODUCER = -1
FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)


@pytest.fixture(
    params=["ottla", pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.full])]
)
def either(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A broker of each kind in turn."""
    if request.param == "kafka":
        address = request.getfixturevalue("apache_kafka").address
        yield SimpleNamespace(bootstrap=address)
    else:
        yield request.getfixturevalue("broker")


def fence(broker: Any, transactional_id: str) -> tuple[int, int]:
    """Returns the producer id, and the epoch from which on producers are not fenced."""
    with Wire(broker.bootstrap) as wire:
        admin = WireProducer(wire, transactional_id)
        assert admin.init() is ErrorCode.none
        return admin.producer_id, admin.epoch


def test_fence_producers_aborts_and_fences(either: Any) -> None:
    topic = new_topic(either)
    name = f"x-{topic}"
    with Wire(either.bootstrap) as wire:
        first = WireProducer(wire, name)
        assert first.init() is ErrorCode.none
        assert first.produce(topic, b"lost") is ErrorCode.none
        assert fence(either, name) == (first.producer_id, first.epoch + 2)
        assert first.produce(topic, b"late") is ErrorCode.invalid_producer_epoch
        assert first.end(commits=True) is ErrorCode.producer_fenced
    # The record and its abort marker: readers are held up by nothing.
    assert end_offset(either, topic, "read_committed") == 2
    write(transactional(either, name), topic, "kept", commits=True)
    assert read(either, topic, 1) == ["kept"]


def test_a_stock_producer_learns_that_it_is_fenced(either: Any) -> None:
    topic = new_topic(either)
    name = f"x-{topic}"
    producer = transactional(either, name)
    write(producer, topic, "before", commits=True)
    producer.begin_transaction()
    producer.produce(topic, "lost")
    assert producer.flush(WAIT_S) == 0
    fence(either, name)
    with pytest.raises(KafkaException) as failure:
        producer.commit_transaction(WAIT_S)
    error = failure.value.args[0]
    assert error.fatal()
    assert error.code() in FENCED
    assert read(either, topic, 1) == ["before"]


def test_an_id_that_nobody_used_is_fenced_too(either: Any) -> None:
    """Kafka stores it as a new producer's; the first real one gets the next epoch."""
    name = f"x-{new_topic(either)}"
    producer_id, epoch = fence(either, name)
    assert (producer_id > NO_PRODUCER, epoch) == (True, 0)
    assert fence(either, name) == (producer_id, 1)
