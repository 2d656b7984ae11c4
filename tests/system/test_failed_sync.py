"""After a failed fsync nobody knows what is on the disk: the broker acknowledges nothing and stops.

Linux reports the error once. The next fsync succeeds, because the pages that could not be written
count as clean, so a broker that tries again acknowledges what a power failure then loses.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.system.wire import Wire

from ottla.protocol.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.header import read_header
from ottla.records.iterate import iterate_records
from ottla.records.record import Record
from ottla.testing import BrokerProcess
from ottla.testing.broker_process import SERVE

CREATE_TOPICS, PRODUCE, FETCH = 19, 0, 1


def create(wire: Wire, topic: str, **configs: str) -> None:
    build = wire.request(CREATE_TOPICS, 7)
    wanted = build.CreatableTopic(
        name=topic,
        num_partitions=1,
        replication_factor=1,
        assignments=(),
        configs=tuple(
            build.CreatableTopicConfig(name=name.replace("_", "."), value=value)
            for name, value in configs.items()
        ),
    )
    answer = wire.ask(build.CreateTopicsRequest(topics=(wanted,), timeout=30_000))
    assert answer.topics[0].error_code is ErrorCode.none


def produce(wire: Wire, topic: str, value: bytes, acks: int) -> ErrorCode:
    build = wire.request(PRODUCE, 9)
    records = build_batch([Record(0, time.time_ns() // 1_000_000, None, value)])
    data = build.PartitionProduceData(index=0, records=records)
    topic_data = (build.TopicProduceData(name=topic, partition_data=(data,)),)
    answer = wire.ask(build.ProduceRequest(acks=acks, timeout=30_000, topic_data=topic_data))
    code: ErrorCode = answer.responses[0].partition_responses[0].error_code
    return code


def read(wire: Wire, topic: str) -> list[bytes | None]:
    build = wire.request(FETCH, 12)
    partition = build.FetchPartition(
        partition=0, fetch_offset=0, partition_max_bytes=1 << 20, current_leader_epoch=-1
    )
    topics = (build.FetchTopic(topic=topic, partitions=(partition,)),)
    request = build.FetchRequest(
        max_wait=0, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=topics
    )
    (found,) = wire.ask(request).responses[0].partitions
    values: list[bytes | None] = []
    left = found.records
    while left:
        header = read_header(left)
        values += [record.value for record in iterate_records(left[: header.size_bytes], header)]
        left = left[header.size_bytes :]
    return values


@pytest.mark.parametrize("acks", [-1, 1])
def test_nothing_is_acknowledged_after_a_failed_sync(tmp_path: Path, acks: int) -> None:
    signal = tmp_path / "the next sync fails"
    program = ("-m", "tests.system.failing_sync", str(signal), "serve")
    broker = BrokerProcess(tmp_path / "data", program=program).start()
    acknowledged: list[bytes] = []

    def send(wire: Wire, value: bytes) -> ErrorCode:
        code = produce(wire, "synced", value, acks)
        if code is ErrorCode.none:
            acknowledged.append(value)
        return code

    try:
        with Wire(broker.bootstrap) as wire:
            create(wire, "synced", flush_messages="1")
            create(wire, "other")
            for value in (b"1", b"2"):
                assert send(wire, value) is ErrorCode.none
            signal.touch()
            assert send(wire, b"lost") is ErrorCode.kafka_storage_error
            assert not signal.exists()
            ended: Any = None
            try:
                while True:
                    assert send(wire, b"later") is not ErrorCode.none
            except (EOFError, OSError) as error:
                ended = error
            assert ended is not None
        assert broker.process is not None
        assert broker.process.wait(60) == 1
    finally:
        broker.end()
    assert "cannot sync " in broker.said()
    assert "Input/output error" in broker.said()
    assert "Traceback" not in broker.said()
    assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    broker.program = SERVE
    with broker, Wire(broker.bootstrap) as wire:
        assert acknowledged == [b"1", b"2"]
        assert read(wire, "synced")[:2] == acknowledged
        assert "an fsync has failed" in broker.said()
