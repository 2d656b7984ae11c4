"""Everything is still there after SIGTERM and start, and after SIGKILL and start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from tests.system.wire import Wire

from ottla.protocol.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.record import Record

PRODUCE, METADATA, INIT_PRODUCER_ID, DESCRIBE_PRODUCERS, DELETE_RECORDS = 0, 3, 22, 61, 21
WAIT_S = 60

Restart = Callable[[Any], None]


def stop_and_start(broker: Any) -> None:
    assert broker.stop() == 0, broker.said()
    broker.start()


def kill_and_start(broker: Any) -> None:
    broker.kill()
    broker.start()


both_ways = pytest.mark.parametrize("restart", [stop_and_start, kill_and_start])


def done(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result(WAIT_S)


def topic_ids(broker: Any) -> dict[str, tuple[Any, int]]:
    """Id and number of partitions of every topic."""
    with Wire(broker.bootstrap) as wire:
        topics = wire.ask(wire.request(METADATA, 12).MetadataRequest(topics=None)).topics
    return {topic.name: (topic.topic_id, len(topic.partitions)) for topic in topics}


def settings_of(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, str]:
    """The settings that are not defaults."""
    (future,) = admin.describe_configs([ConfigResource(kind, name)]).values()
    return {
        entry.name: entry.value for entry in future.result(WAIT_S).values() if not entry.is_default
    }


@both_ways
def test_topics_ids_and_settings(new_broker: Callable[..., Any], restart: Restart) -> None:
    broker = new_broker()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    done(admin.create_topics([NewTopic("a", 3, 1, config={"retention.ms": "7200000"})]))
    done(admin.create_topics([NewTopic("b", 1, 1), NewTopic("gone", 2, 1)]))
    done(admin.create_partitions([NewPartitions("b", 4)]))
    done(admin.delete_topics(["gone"]))
    entries = [
        (ResourceType.TOPIC, "b", "max.message.bytes", "4000"),
        (ResourceType.BROKER, "1", "log.retention.ms", "3600000"),
    ]
    for kind, name, setting, value in entries:
        entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(kind, name, incremental_configs=[entry])
        done(admin.incremental_alter_configs([resource]))
    before = topic_ids(broker)
    assert {name: count for name, (_, count) in before.items()} == {"a": 3, "b": 4}
    for _ in range(2):
        restart(broker)
        assert topic_ids(broker) == before
        assert settings_of(admin, ResourceType.TOPIC, "a")["retention.ms"] == "7200000"
        assert settings_of(admin, ResourceType.TOPIC, "b")["max.message.bytes"] == "4000"
        assert settings_of(admin, ResourceType.BROKER, "1")["log.retention.ms"] == "3600000"
    with Wire(broker.bootstrap) as wire:
        answer = send(wire, "b", build_batch([Record(0, 1, None, bytes(5000))]))
        assert answer.error_code is ErrorCode.message_too_large


@both_ways
def test_records_and_where_the_log_begins(new_broker: Callable[..., Any], restart: Restart) -> None:
    broker = new_broker("--config", "log.segment.bytes=1048576")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 1})
    for number in range(3000):
        producer.produce("t", b"%d" % number + bytes(1000), headers={"n": str(number)})
    assert producer.flush(WAIT_S) == 0
    with Wire(broker.bootstrap) as wire:
        build = wire.request(DELETE_RECORDS, 1)
        partition = build.DeleteRecordsPartition(partition_index=0, offset=700)
        topics = (build.DeleteRecordsTopic(name="t", partitions=(partition,)),)
        wire.ask(build.DeleteRecordsRequest(topics=topics, timeout=5000))
    # What DeleteRecords said holds from the next checkpoint on, as in Kafka: a clean stop is one.
    first = 700 if restart is stop_and_start else 0
    restart(broker)
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "g"}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    start, end = consumer.get_watermark_offsets(TopicPartition("t", 0), timeout=WAIT_S)
    assert end == 3000
    assert start in (first, 700)
    consumer.assign([TopicPartition("t", 0, start)])
    messages: list[Any] = []
    while len(messages) < end - start:
        some = consumer.consume(end - start - len(messages), timeout=WAIT_S)
        assert some
        messages += some
    consumer.close()
    assert [message.offset() for message in messages] == list(range(start, end))
    for message in messages:
        assert message.value() == b"%d" % message.offset() + bytes(1000)
        assert message.headers() == [("n", b"%d" % message.offset())]


@both_ways
def test_groups_and_their_offsets(new_broker: Callable[..., Any], restart: Restart) -> None:
    broker = new_broker("--config", "offsets.topic.num.partitions=4")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for _ in range(10):
        producer.produce("t", b"x")
    assert producer.flush(WAIT_S) == 0
    settings = {"bootstrap.servers": broker.bootstrap, "auto.offset.reset": "earliest"}
    for number in range(5):
        consumer = Consumer(
            {**settings, "group.id": f"group-{number}", "enable.auto.commit": False}
        )
        consumer.subscribe(["t"])
        assert consumer.consume(1, timeout=WAIT_S)
        consumer.commit(
            offsets=[TopicPartition("t", 0, number, metadata=f"note {number}")], asynchronous=False
        )
        consumer.close()
    restart(broker)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    listed = admin.list_consumer_groups(request_timeout=WAIT_S).result(WAIT_S)
    assert {group.group_id for group in listed.valid} == {f"group-{n}" for n in range(5)}
    for number in range(5):
        consumer = Consumer({**settings, "group.id": f"group-{number}"})
        (found,) = consumer.committed([TopicPartition("t", 0)], timeout=WAIT_S)
        assert (found.offset, found.metadata) == (number, f"note {number}")
        consumer.subscribe(["t"])
        (message,) = consumer.consume(1, timeout=WAIT_S)
        assert message.offset() == number
        consumer.close()


def send(wire: Wire, topic: str, records: bytes) -> Any:
    build = wire.request(PRODUCE, 9)
    data = build.PartitionProduceData(index=0, records=records)
    topics = (build.TopicProduceData(name=topic, partition_data=(data,)),)
    answer = wire.ask(build.ProduceRequest(acks=-1, timeout=5000, topic_data=topics))
    return answer.responses[0].partition_responses[0]


def batch_of(producer_id: int, sequence: int, count: int = 3) -> bytes:
    records = [Record(0, 1_000, None, b"%d" % (sequence + number)) for number in range(count)]
    return build_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)


@both_ways
def test_producers_are_still_known(new_broker: Callable[..., Any], restart: Restart) -> None:
    """A batch sent again after the restart has its old offset; a gap in the sequence is refused;
    ids are never given twice.
    """
    broker = new_broker()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    done(admin.create_topics([NewTopic("t", 1, 1)]))
    ids = []
    for _ in range(3):
        with Wire(broker.bootstrap) as wire:
            asked = wire.request(INIT_PRODUCER_ID, 4).InitProducerIdRequest(
                transactional_id=None, transaction_timeout=1000, producer_id=-1, producer_epoch=-1
            )
            ids.append(wire.ask(asked).producer_id)
            for number in range(4):
                answer = send(wire, "t", batch_of(ids[-1], 3 * number))
                assert answer.error_code is ErrorCode.none
        restart(broker)
        with Wire(broker.bootstrap) as wire:
            again = send(wire, "t", batch_of(ids[-1], 9))
            assert (again.error_code, again.base_offset) == (ErrorCode.none, answer.base_offset)
            gap = send(wire, "t", batch_of(ids[-1], 15))
            assert gap.error_code is ErrorCode.out_of_order_sequence_number
            goes_on = send(wire, "t", batch_of(ids[-1], 12))
            assert goes_on.base_offset == answer.base_offset + 3
            build = wire.request(DESCRIBE_PRODUCERS, 0)
            topics = (build.TopicRequest(name="t", partition_indexes=(0,)),)
            described = wire.ask(build.DescribeProducersRequest(topics=topics))
            producers = described.topics[0].partitions[0].active_producers
            last = {each.producer_id: each.last_sequence for each in producers}
            assert last == dict.fromkeys(ids, 14)
    assert len(set(ids)) == 3
