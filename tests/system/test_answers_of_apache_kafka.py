"""The same requests to Ottla and to Apache Kafka: the answers must be the same."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

import pytest
from bench.apache_kafka import ApacheKafka
from confluent_kafka.admin import AdminClient, NewTopic
from tests.system import crafted_batches
from tests.system.wire import Wire

from bench import fixture
from ottla.protocol.errors import ErrorCode
from ottla.records.header import HEADER_BYTES, read_header
from ottla.testing import BrokerProcess

kafka_jars, apache_kafka = fixture.kafka_jars, fixture.apache_kafka
pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

PRODUCE, FETCH, LIST_OFFSETS = 0, 1, 2
NOT_YET = (ErrorCode.unknown_topic_or_partition, ErrorCode.not_leader_or_follower)
WAIT_S = 30


class Asked:
    """One broker, and short questions to it."""

    def __init__(self, bootstrap: str) -> None:
        self.wire = Wire(bootstrap)
        self.admin = AdminClient({"bootstrap.servers": bootstrap})

    def create(self, partitions: int, settings: Mapping[str, str] | None = None) -> str:
        name = f"t-{uuid.uuid4().hex[:10]}"
        topic = NewTopic(name, partitions, 1, config=dict(settings or {}))
        self.admin.create_topics([topic])[name].result(WAIT_S)
        return name

    def produce(self, topic: str, index: int, batch: bytes) -> Any:
        """The partition's answer; a partition that is only just made is asked again."""
        build = self.wire.request(PRODUCE, 9)
        data = (build.PartitionProduceData(index=index, records=batch),)
        topics = (build.TopicProduceData(name=topic, partition_data=data),)
        request = build.ProduceRequest(acks=-1, timeout=30_000, topic_data=topics)
        until = time.monotonic() + WAIT_S
        while True:
            (found,) = self.wire.ask(request).responses[0].partition_responses
            if found.error_code not in NOT_YET or time.monotonic() > until:
                return found
            time.sleep(0.05)

    def offset(self, topic: str, index: int, timestamp: int) -> tuple[Any, ...]:
        """Error, offset, timestamp and leader epoch that ListOffsets answers."""
        build = self.wire.request(LIST_OFFSETS, 8)
        wanted = (
            build.ListOffsetsPartition(
                partition_index=index, current_leader_epoch=-1, timestamp=timestamp
            ),
        )
        topics = (build.ListOffsetsTopic(name=topic, partitions=wanted),)
        request = build.ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics)
        (found,) = self.wire.ask(request).topics[0].partitions
        return found.error_code, found.offset, found.timestamp, found.leader_epoch

    def stored(self, topic: str, index: int) -> bytes:
        """The first batch of a partition, as a consumer gets it."""
        build = self.wire.request(FETCH, 11)
        wanted = (
            build.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=10_000_000),
        )
        topics = (build.FetchTopic(topic=topic, partitions=wanted),)
        request = build.FetchRequest(max_wait=1_000, min_bytes=1, session_epoch=-1, topics=topics)
        (found,) = self.wire.ask(request).responses[0].partitions
        return bytes(found.records)


@pytest.fixture(scope="module")
def both(broker: BrokerProcess, apache_kafka: ApacheKafka) -> tuple[Asked, Asked]:
    """Ottla and Apache Kafka."""
    return Asked(broker.bootstrap), Asked(apache_kafka.address)


def _outcome(asked: Asked, topic: str, index: int, batch: bytes) -> tuple[Any, ...]:
    answer = asked.produce(topic, index, batch)
    found: list[Any] = [answer.error_code]
    found.append([each.batch_index for each in answer.record_errors])
    found += [asked.offset(topic, index, at) for at in (-1, -2)]
    if answer.log_append_time >= 0:  # its time differs
        return tuple(found)
    found += [asked.offset(topic, index, at) for at in (-3, crafted_batches.TIME_MS + 9_000)]
    if answer.error_code is ErrorCode.none:
        stored = asked.stored(topic, index)
        header = read_header(stored)
        header.leader_epoch = 0
        if header.compression == batch[22] & 7:
            found.append((header, stored[HEADER_BYTES:]))
        else:
            found.append((header.compression, header.max_timestamp, header.count))
    return tuple(found)


SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"cleanup.policy": "compact"},
    {"compression.type": "uncompressed", "max.message.bytes": "14000"},
    {"compression.type": "zstd"},
    {"message.timestamp.type": "LogAppendTime"},
    {"message.timestamp.before.max.ms": "1000"},
)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: "-".join(each.values()) or "plain")
@pytest.mark.parametrize("codec", range(5))
def test_batches_that_no_good_producer_sends(
    both: tuple[Asked, Asked], codec: int, settings: dict[str, str]
) -> None:
    cases = crafted_batches.crafted(codec)
    if "compression.type" in settings:
        # Kafka then writes every record again, with the batch's time; Ottla keeps the records'.
        del cases["log append time"]
    topics = [asked.create(len(cases), settings) for asked in both]
    different = {}
    for index, (name, batch) in enumerate(cases.items()):
        ours, kafkas = (
            _outcome(asked, topic, index, batch) for asked, topic in zip(both, topics, strict=True)
        )
        refused = ours[0] is ErrorCode.invalid_record
        if name in crafted_batches.UNREADABLE:
            refused = refused or ours[0] is ErrorCode.message_too_large
            fits = refused
        elif name in crafted_batches.BROKEN and kafkas[0] is ErrorCode.unknown_server_error:
            fits = refused
        else:
            fits = ours == kafkas
        if not fits:
            different[name] = (ours, kafkas)
    assert not different, "\n".join(f"{name}: {found}" for name, found in different.items())
