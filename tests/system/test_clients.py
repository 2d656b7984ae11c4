"""Stock clients do their everyday work: librdkafka (confluent-kafka) and kafka-python.

Groups have a file of their own (`test_groups`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import kafka
import pytest
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

WAIT_S = 60
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
SOON = ("--config", "log.retention.check.interval.ms=200")


@pytest.fixture
def admin(broker: Any) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def done(futures: dict[Any, Any]) -> Any:
    """The result of the only one."""
    (future,) = futures.values()
    return future.result(WAIT_S)


def new_topic(admin: AdminClient, partitions: int = 1, **config: str) -> str:
    name = f"topic-{uuid4()}"
    settings = {key.replace("_", "."): value for key, value in config.items()}
    done(admin.create_topics([NewTopic(name, partitions, 1, config=settings)]))
    return name


def produce(broker: Any, topic: str, *records: dict[str, Any], **settings: Any) -> list[Any]:
    """The messages as delivered, or the errors that were told instead."""
    told: list[Any] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, **settings})
    for record in records:
        producer.produce(
            topic, **record, on_delivery=lambda error, message: told.append(error or message)
        )
    assert producer.flush(WAIT_S) == 0
    return told


def consume(broker: Any, topic: str, count: int, offset: int = 0, **settings: Any) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none", **settings})
    consumer.assign([TopicPartition(topic, 0, offset)])
    messages: list[Any] = []
    until = time.monotonic() + WAIT_S
    while len(messages) < count:
        assert time.monotonic() < until, f"{len(messages)} of {count}"
        messages += consumer.consume(count - len(messages), timeout=0.5)
    consumer.close()
    assert not any(message.error() for message in messages)
    return messages


def ends(broker: Any, topic: str) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none"})
    found: tuple[int, int] = consumer.get_watermark_offsets(TopicPartition(topic, 0), WAIT_S)
    consumer.close()
    return found


def alter(admin: AdminClient, topic: str, **config: str) -> None:
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in config.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    done(admin.incremental_alter_configs([resource]))


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_whatever_a_record_holds_comes_back(
    broker: Any, admin: AdminClient, compression: str
) -> None:
    topic = new_topic(admin)
    records = [
        {"key": b"k%d" % number, "value": b"v" * number, "timestamp": 1_000_000 + number,
         "headers": [("n", b"%d" % number), ("none", None), ("n", b"twice")]}
        for number in range(300)
    ]  # fmt: skip
    records += [{"key": b"gone", "value": None}, {"key": None, "value": b""}]
    sent = produce(broker, topic, *records, **{"compression.type": compression})
    assert [message.offset() for message in sent] == list(range(302))
    for got, record in zip(consume(broker, topic, 302), records, strict=True):
        assert (got.key(), got.value()) == (record["key"], record["value"])
        if "headers" in record:
            assert got.headers() == record["headers"]
            assert got.timestamp() == (TIMESTAMP_CREATE_TIME, record["timestamp"])


@pytest.mark.parametrize("compression", [None, "gzip", "lz4", "zstd"])
def test_kafka_python_reads_what_it_wrote_and_what_librdkafka_wrote(
    broker: Any, admin: AdminClient, compression: str | None
) -> None:
    topic = new_topic(admin)
    producer = kafka.KafkaProducer(
        bootstrap_servers=broker.bootstrap, acks="all", compression_type=compression
    )
    sent = [
        producer.send(topic, key=b"k", value=b"%d" % n, headers=[("h", b"x")], timestamp_ms=5 + n)
        for n in range(50)
    ]
    assert [future.get(WAIT_S).offset for future in sent] == list(range(50))
    producer.close()
    produce(broker, topic, {"value": b"50"}, **{"compression.type": compression or "none"})
    consumer = kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
    where = kafka.TopicPartition(topic, 0)
    consumer.assign([where])
    values: list[bytes] = []
    until = time.monotonic() + WAIT_S
    while len(values) < 51:
        assert time.monotonic() < until
        for records in consumer.poll(timeout_ms=500).values():
            values += [record.value for record in records]
    assert values == [b"%d" % n for n in range(51)]
    assert consumer.offsets_for_times({where: 25})[where].offset == 20
    assert consumer.beginning_offsets([where]) == {where: 0}
    assert consumer.end_offsets([where]) == {where: 51}
    consumer.close()


def test_kafka_pythons_admin(broker: Any) -> None:
    topic = f"admin-{uuid4()}"
    admin = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics([kafka.admin.NewTopic(topic, 2, 1)])
    admin.create_partitions({topic: kafka.admin.NewPartitions(5)})
    (described,) = admin.describe_topics([topic])
    assert len(described["partitions"]) == 5
    assert topic in admin.list_topics()
    produce(broker, topic, *({"value": b"x", "partition": 0} for _ in range(10)))
    admin.delete_records({kafka.TopicPartition(topic, 0): 4})
    assert ends(broker, topic) == (4, 10)
    admin.delete_topics([topic])
    assert topic not in admin.list_topics()
    admin.close()


def test_seek_by_time(broker: Any, admin: AdminClient) -> None:
    topic = new_topic(admin)
    times = [1000, 2000, 2000, 5000, 4000]
    produce(broker, topic, *({"value": b"x", "timestamp": each} for each in times))
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none"})
    for asked, found in ((0, 0), (1001, 1), (2000, 1), (2001, 3), (5000, 3), (5001, -1)):
        (answer,) = consumer.offsets_for_times([TopicPartition(topic, 0, asked)], WAIT_S)
        assert answer.offset == found, asked
    consumer.close()
    for spec, found in (
        (OffsetSpec.earliest(), 0), (OffsetSpec.latest(), 5), (OffsetSpec.max_timestamp(), 3),
    ):  # fmt: skip
        assert done(admin.list_offsets({TopicPartition(topic, 0): spec})).offset == found


def test_delete_records(broker: Any, admin: AdminClient) -> None:
    topic = new_topic(admin)
    produce(broker, topic, *({"value": b"%d" % number} for number in range(100)))
    deleted = done(admin.delete_records([TopicPartition(topic, 0, 40)]))
    assert deleted.low_watermark == 40
    assert ends(broker, topic) == (40, 100)
    (first,) = consume(broker, topic, 1, 40)
    assert first.value() == b"40"
    (reset,) = consume(broker, topic, 1, 5, **{"auto.offset.reset": "earliest"})
    assert reset.offset() == 40
    with pytest.raises(KafkaException) as refused:
        done(admin.delete_records([TopicPartition(topic, 0, 101)]))
    assert refused.value.args[0].code() == KafkaError.OFFSET_OUT_OF_RANGE
    assert done(admin.delete_records([TopicPartition(topic, 0, -1)])).low_watermark == 100


def test_a_topic_made_again_is_another_one(broker: Any, admin: AdminClient) -> None:
    topic = new_topic(admin)
    produce(broker, topic, *({"value": b"old"} for _ in range(50)))

    def topic_id() -> str:
        (future,) = admin.describe_topics(TopicCollection([topic])).values()
        return str(future.result(WAIT_S).topic_id)

    first = topic_id()
    done(admin.delete_topics([topic]))
    done(admin.create_topics([NewTopic(topic, 2, 1)]))
    assert topic_id() != first
    assert ends(broker, topic) == (0, 0)
    (sent,) = produce(broker, topic, {"value": b"new", "partition": 0})
    assert sent.offset() == 0
    assert [message.value() for message in consume(broker, topic, 1)] == [b"new"]
    done(admin.create_partitions([NewPartitions(topic, 3)]))
    (sent,) = produce(broker, topic, {"value": b"more", "partition": 2})
    assert (sent.partition(), sent.offset()) == (2, 0)
    with pytest.raises(KafkaException) as refused:
        done(admin.create_partitions([NewPartitions(topic, 1)]))
    assert refused.value.args[0].code() == KafkaError.INVALID_PARTITIONS


def test_max_message_bytes_refuses(broker: Any, admin: AdminClient) -> None:
    topic = new_topic(admin, max_message_bytes="1000")
    (refused,) = produce(broker, topic, {"value": bytes(2000)})
    assert refused.code() == KafkaError.MSG_SIZE_TOO_LARGE
    alter(admin, topic, max_message_bytes="3000")
    (sent,) = produce(broker, topic, {"value": bytes(2000)})
    assert sent.offset() == 0


def test_log_append_time(broker: Any, admin: AdminClient) -> None:
    topic = new_topic(admin, message_timestamp_type="LogAppendTime")
    before_ms = time.time_ns() // 1_000_000
    produce(broker, topic, {"value": b"x", "timestamp": 5})
    alter(admin, topic, message_timestamp_type="CreateTime")
    produce(broker, topic, {"value": b"x", "timestamp": 5})
    stamped, own = consume(broker, topic, 2)
    kind, time_ms = stamped.timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME
    assert before_ms <= time_ms <= time.time_ns() // 1_000_000
    assert own.timestamp() == (TIMESTAMP_CREATE_TIME, 5)


def test_the_topics_own_compression(broker: Any, admin: AdminClient) -> None:
    topic = new_topic(admin, compression_type="gzip")
    record = {"value": b"the same again and again " * 400}
    produce(broker, topic, record, record, **{"compression.type": "zstd"})
    produce(broker, topic, record, **{"compression.type": "none"})
    content = (broker.data / f"{topic}-0" / f"{0:020}.log").read_bytes()
    assert len(content) < 2_000
    assert content[22] & 7 == 1  # the attributes of the first batch: gzip
    assert [each.value() for each in consume(broker, topic, 3)] == [record["value"]] * 3


def test_a_compacted_topic_requires_keys(broker: Any, admin: AdminClient) -> None:
    topic = new_topic(admin, cleanup_policy="compact")
    told = produce(broker, topic, {"value": b"x"}, **{"linger.ms": 0})
    assert told[0].code() == KafkaError.INVALID_RECORD
    (sent,) = produce(broker, topic, {"key": b"k", "value": b"x"})
    assert sent.offset() == 0


def test_times_out_of_bounds_are_refused(broker: Any, admin: AdminClient) -> None:
    topic = new_topic(admin, message_timestamp_before_max_ms="3600000")
    (refused,) = produce(broker, topic, {"value": b"x", "timestamp": 1000})
    assert refused.code() == KafkaError.INVALID_TIMESTAMP


def test_retention_removes_what_is_closed_and_old(new_broker: Callable[..., Any]) -> None:
    """By time and by size; the active segment stays until it is rolled (segment.ms)."""
    broker = new_broker(*SOON)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    by_time = new_topic(admin, retention_ms="1000", segment_ms="500")
    by_size = new_topic(admin, retention_bytes="1200000", segment_bytes="1048576")
    for _ in range(40):
        produce(broker, by_size, {"value": bytes(100_000)}, **{"compression.type": "none"})
    produce(broker, by_time, {"value": b"old", "timestamp": 1_000_000})
    until = time.monotonic() + WAIT_S
    while ends(broker, by_time) != (1, 1) or ends(broker, by_size)[0] == 0:
        assert time.monotonic() < until, (ends(broker, by_time), ends(broker, by_size))
        time.sleep(0.1)
    start, end = ends(broker, by_size)
    assert end == 40
    assert end - start >= 11
    (sent,) = produce(broker, by_time, {"value": b"new"})
    assert sent.offset() == 1
    assert broker.stop() == 0
    assert "Traceback" not in broker.said()


def test_settings_are_told_with_where_they_come_from(broker: Any, admin: AdminClient) -> None:
    topic = new_topic(admin, retention_ms="5000")
    entries = done(admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))
    assert (entries["retention.ms"].value, entries["retention.ms"].is_default) == ("5000", False)
    assert entries["segment.bytes"].is_default
    with pytest.raises(KafkaException) as refused:
        alter(admin, topic, retention_ms="soon")
    assert refused.value.args[0].code() == KafkaError.INVALID_CONFIG
    with pytest.raises(KafkaException) as refused:
        new_topic(admin, no_such_setting="1")
    assert refused.value.args[0].code() == KafkaError.INVALID_CONFIG


def test_bad_names_and_topics_that_are_not_there(broker: Any, admin: AdminClient) -> None:
    for name in ("a b", "..", "x" * 250):
        with pytest.raises(KafkaException) as refused:
            done(admin.create_topics([NewTopic(name, 1, 1)]))
        assert refused.value.args[0].code() == KafkaError.TOPIC_EXCEPTION
    with pytest.raises(KafkaException) as refused:
        done(admin.delete_topics([f"none-{uuid4()}"]))
    assert refused.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    with pytest.raises(KafkaException) as refused:
        done(admin.create_topics([NewTopic(new_topic(admin), 1, 1)]))
    assert refused.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
