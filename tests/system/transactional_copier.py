"""A program: consumes a topic, changes each record, and produces it, with the offsets of the input
in the transaction (KIP-447).

    transactional_copier.py CLIENT BOOTSTRAP SOURCE TARGET GROUP TRANSACTIONAL_ID

It runs until it is killed. Another error than one that an abort repairs ends it, as it would end an
application: it is started again.
"""

from __future__ import annotations

import sys
from typing import Any

MAX_RECORDS = 5
"""Of one transaction: so that a kill hits many."""
WAIT_S = 30
SESSION_TIMEOUT_MS = 3_000


def copy_with_confluent(bootstrap: str, source: str, target: str, group: str, own_id: str) -> None:
    from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "session.timeout.ms": SESSION_TIMEOUT_MS,
        }
    )
    consumer.subscribe([source])
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": own_id})
    producer.init_transactions(WAIT_S)
    while True:
        messages = [each for each in consumer.consume(MAX_RECORDS, 0.2) if not each.error()]
        if not messages:
            continue
        producer.begin_transaction()
        ends: dict[tuple[str, int], int] = {}
        try:
            for each in messages:
                producer.produce(target, each.value().upper(), partition=each.partition())
                ends[each.topic(), each.partition()] = each.offset() + 1
            producer.send_offsets_to_transaction(
                [TopicPartition(*partition, offset) for partition, offset in ends.items()],
                consumer.consumer_group_metadata(),
                WAIT_S,
            )
            producer.commit_transaction(WAIT_S)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(WAIT_S)
            for found in consumer.committed(consumer.assignment(), WAIT_S):
                start = TopicPartition(found.topic, found.partition, max(found.offset, 0))
                consumer.seek(start)


def copy_with_kafka_python(
    bootstrap: str, source: str, target: str, group: str, own_id: str
) -> None:
    import kafka
    from kafka.structs import OffsetAndMetadata

    consumer = kafka.KafkaConsumer(
        source,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        max_poll_records=MAX_RECORDS,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=500,
    )
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=own_id)
    producer.init_transactions()
    while True:
        found: dict[Any, Any] = consumer.poll(timeout_ms=200)
        if not found:
            continue
        producer.begin_transaction()
        for partition, records in found.items():
            for record in records:
                producer.send(target, record.value.upper(), partition=partition.partition)
        ends = {
            partition: OffsetAndMetadata(records[-1].offset + 1, "", -1)
            for partition, records in found.items()
        }
        # An error ends the program: the next one begins at the committed offsets.
        producer.send_offsets_to_transaction(ends, consumer.group_metadata())
        producer.commit_transaction()


if __name__ == "__main__":
    client, *given = sys.argv[1:]
    {"confluent": copy_with_confluent, "kafka-python": copy_with_kafka_python}[client](*given)
