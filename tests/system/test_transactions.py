"""Transactions of stock clients on one broker: librdkafka (confluent-kafka) and kafka-python."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

import kafka
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.client.admin.asked_journeys import asked_journey

WAIT_S = 60


def new_topic(broker: Any, partitions: int = 1) -> str:
    name = f"topic-{uuid4()}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    (future,) = admin.create_topics([NewTopic(name, partitions, 1)]).values()
    future.result(WAIT_S)
    return name


def transactional(broker: Any, transactional_id: str, **settings: Any) -> Producer:
    """A producer that has fenced the ones before it."""
    given = {"bootstrap.servers": broker.bootstrap, "transactional.id": transactional_id}
    producer = Producer({**given, **settings})
    producer.init_transactions(WAIT_S)
    return producer


def write(producer: Producer, topic: str, *values: str, commits: bool) -> None:
    """One transaction."""
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(WAIT_S) == 0
    if commits:
        producer.commit_transaction(WAIT_S)
    else:
        producer.abort_transaction(WAIT_S)


def read(broker: Any, topic: str, count: int, **settings: Any) -> list[str]:
    """So many values of partition 0; by default librdkafka reads committed ones."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none", **settings})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[str] = []
    until = time.monotonic() + WAIT_S
    while len(values) < count:
        assert time.monotonic() < until, values
        for message in consumer.consume(count - len(values), timeout=0.5):
            assert message.error() is None
            values.append(message.value().decode())
    consumer.close()
    return values


def end_offset(broker: Any, topic: str, isolation: str) -> int:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "none"}
    consumer = Consumer({**settings, "isolation.level": isolation})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), WAIT_S, cached=False)
    consumer.close()
    return int(end)


def test_only_committed_records_are_read(broker: Any) -> None:
    topic = new_topic(broker)
    producer = transactional(broker, f"x-{topic}")
    write(producer, topic, "a", "b", commits=True)
    write(producer, topic, "lost", commits=False)
    write(producer, topic, "c", commits=True)
    assert read(broker, topic, 3) == ["a", "b", "c"]
    everything = read(broker, topic, 4, **{"isolation.level": "read_uncommitted"})
    assert everything == ["a", "b", "lost", "c"]


def test_an_open_transaction_ends_what_committed_readers_see(broker: Any) -> None:
    topic = new_topic(broker)
    first = transactional(broker, f"first-{topic}")
    second = transactional(broker, f"second-{topic}")
    first.begin_transaction()
    first.produce(topic, "open")
    assert first.flush(WAIT_S) == 0
    write(second, topic, "behind", commits=True)
    assert end_offset(broker, topic, "read_committed") == 0
    assert end_offset(broker, topic, "read_uncommitted") == 3
    asked = {"journey": 1, "topic": topic, "partition": 0, "offset": 1}
    held_by = asked_journey(broker.bootstrap, asked)["read_committed"]["held_by"]
    assert held_by["first_offset"] == 0
    coordinator = held_by["coordinator"]
    assert (coordinator["transactional_id"], coordinator["hanging"]) == (f"first-{topic}", False)
    assert coordinator["times_out_ms"] - coordinator["started_ms"] == 60_000
    first.commit_transaction(WAIT_S)
    assert read(broker, topic, 2) == ["open", "behind"]


def test_a_new_producer_fences_the_one_before(broker: Any) -> None:
    topic = new_topic(broker)
    zombie = transactional(broker, f"x-{topic}")
    zombie.begin_transaction()
    zombie.produce(topic, "lost")
    assert zombie.flush(WAIT_S) == 0
    write(transactional(broker, f"x-{topic}"), topic, "kept", commits=True)
    zombie.produce(topic, "lost too")
    with pytest.raises(KafkaException) as refused:
        zombie.commit_transaction(WAIT_S)
    assert refused.value.args[0].fatal()
    assert refused.value.args[0].code() in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
    assert read(broker, topic, 1) == ["kept"]


def test_a_transaction_over_several_partitions_and_ids(broker: Any) -> None:
    topic = new_topic(broker, 3)
    producers = [transactional(broker, f"{number}-{topic}") for number in range(5)]
    for producer in producers:
        producer.begin_transaction()
    for producer in producers:
        for partition in range(3):
            producer.produce(topic, "v", partition=partition)
    for number, producer in enumerate(producers):
        if number % 2:
            producer.abort_transaction(WAIT_S)
        else:
            producer.commit_transaction(WAIT_S)
    assert read(broker, topic, 3) == ["v"] * 3


def test_a_timed_out_transaction_is_aborted(new_broker: Any) -> None:
    scan = ("--config", "transaction.abort.timed.out.transaction.cleanup.interval.ms=100")
    broker = new_broker(*scan)
    topic = new_topic(broker)
    producer = transactional(broker, "x", **{"transaction.timeout.ms": 1_000})
    producer.begin_transaction()
    producer.produce(topic, "lost")
    assert producer.flush(WAIT_S) == 0
    write(transactional(broker, "y"), topic, "kept", commits=True)
    assert read(broker, topic, 1) == ["kept"]
    with pytest.raises(KafkaException):
        producer.commit_transaction(WAIT_S)


def test_a_restart_keeps_transactions(new_broker: Any, tmp_path: Any) -> None:
    data = tmp_path / "data"
    broker = new_broker(data=data)
    topic = new_topic(broker)
    producer = transactional(broker, "x")
    producer.begin_transaction()
    producer.produce(topic, "lost")
    assert producer.flush(WAIT_S) == 0
    broker.kill()
    again = new_broker(data=data)
    write(transactional(again, "x"), topic, "kept", commits=True)
    assert read(again, topic, 1) == ["kept"]


def test_kafka_python(broker: Any) -> None:
    topic = new_topic(broker)
    producer = kafka.KafkaProducer(
        bootstrap_servers=broker.bootstrap, transactional_id=f"x-{topic}"
    )
    producer.init_transactions()
    for value, commits in ((b"a", True), (b"lost", False), (b"b", True)):
        producer.begin_transaction()
        producer.send(topic, value).get(WAIT_S)
        if commits:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.close()
    assert read(broker, topic, 2) == ["a", "b"]
    reader = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        consumer_timeout_ms=WAIT_S * 1000,
    )
    assert [next(reader).value for _ in range(2)] == [b"a", b"b"]
    reader.close()
