"""Consume, transform, produce: in transactions with the offsets of the input (KIP-447)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random
from typing import Any, Final
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

WAIT_S: Final = 60
PARTITIONS: Final = 2
RECORDS: Final = 120


def topics_of(broker: Any) -> tuple[str, str]:
    names = (f"in-{uuid4()}", f"out-{uuid4()}")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    created = admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names])
    for future in created.values():
        future.result(WAIT_S)
    return names


def reader_of(broker: Any, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "session.timeout.ms": 6_000,
        }
    )


class Instance:
    """One instance of the application; each has a transactional id of its own, as KIP-447 allows:
    the group fences former owners."""

    def __init__(self, broker: Any, source: str, target: str, random: Random) -> None:
        self._target = target
        self._random = random
        self._consumer = reader_of(broker, f"group-{source}")
        self._consumer.subscribe([source])
        self._producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "transactional.id": f"id-{uuid4()}",
                # What an instance leaves open ends when it has timed out.
                "transaction.timeout.ms": 5_000,
            }
        )
        self._producer.init_transactions(WAIT_S)
        self._assigned: list[TopicPartition] = []

    def step(self) -> None:
        """One transaction: committed, aborted, or refused because another instance owns the
        partitions now."""
        messages = [each for each in self._consumer.consume(10, timeout=0.3) if not each.error()]
        if not messages:
            return
        self._producer.begin_transaction()
        for message in messages:
            self._producer.produce(
                self._target, message.value().upper(), partition=message.partition()
            )
        try:
            if self._random.random() < 0.2:
                raise KafkaException
            self._producer.send_offsets_to_transaction(
                next_offsets(messages), self._consumer.consumer_group_metadata(), WAIT_S
            )
            self._producer.commit_transaction(WAIT_S)
        except KafkaException:
            self._producer.abort_transaction(WAIT_S)
            self._rewind()

    def _rewind(self) -> None:
        """Back to what is committed: what was read since has not been delivered."""
        for each in self._consumer.committed(self._consumer.assignment(), WAIT_S):
            offset = each.offset if each.offset >= 0 else 0
            self._consumer.seek(TopicPartition(each.topic, each.partition, offset))

    def close(self) -> None:
        self._consumer.close()

    def leave(self) -> None:
        """Leaves the group, and an open transaction behind."""
        messages = self._consumer.consume(5, timeout=1)
        self._producer.begin_transaction()
        for message in messages:
            if not message.error():
                self._producer.produce(self._target, b"LOST", partition=message.partition())
        self._producer.flush(WAIT_S)
        self._consumer.close()


def next_offsets(messages: list[Message]) -> list[TopicPartition]:
    last = {(each.topic(), each.partition()): each.offset() for each in messages}
    return [TopicPartition(*partition, offset + 1) for partition, offset in last.items()]


def values_of(broker: Any, topic: str, count: int) -> Iterator[tuple[int, str]]:
    """Partition and value of so many committed records."""
    consumer = reader_of(broker, f"check-{uuid4()}")
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    until = time.monotonic() + WAIT_S
    while count:
        assert time.monotonic() < until, f"{count} records are missing"
        for message in consumer.consume(count, timeout=0.5):
            assert message.error() is None
            count -= 1
            yield message.partition(), message.value().decode()
    # Nothing comes after them.
    assert not [each for each in consumer.consume(1, timeout=1) if not each.error()]
    consumer.close()


@pytest.mark.full
def test_every_record_is_delivered_once_and_in_order(broker: Any) -> None:
    source, target = topics_of(broker)
    feeder = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        feeder.produce(source, f"r{number}", partition=number % PARTITIONS)
    assert feeder.flush(WAIT_S) == 0
    random = Random(11)
    instances = [Instance(broker, source, target, random) for _ in range(2)]
    done = reader_of(broker, f"group-{source}")
    partitions = [TopicPartition(source, partition) for partition in range(PARTITIONS)]
    until = time.monotonic() + 2 * WAIT_S
    for turn in range(10_000):
        assert time.monotonic() < until
        for instance in instances:
            instance.step()
        if turn == 3:
            instances.pop().leave()
            instances.append(Instance(broker, source, target, random))
        committed = done.committed(partitions, WAIT_S)
        if sum(max(each.offset, 0) for each in committed) == RECORDS:
            break
    for consumer in (done, *instances):
        consumer.close()
    found: dict[int, list[str]] = {partition: [] for partition in range(PARTITIONS)}
    for partition, value in values_of(broker, target, RECORDS):
        found[partition].append(value)
    for partition, values in found.items():
        assert values == [f"R{number}" for number in range(partition, RECORDS, PARTITIONS)]
