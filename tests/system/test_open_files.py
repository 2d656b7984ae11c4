"""A broker that has no more files to open when a topic is created."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

from tests.system.wire import Wire

from ottla.protocol.errors import ErrorCode
from ottla.protocol.versions import CREATE_TOPICS, PRODUCE
from ottla.records.build import build_batch
from ottla.records.record import Record

WITHIN_S = 60


def create(wire: Wire, topic: str) -> ErrorCode:
    build = wire.request(CREATE_TOPICS, 7)
    topics = (build.CreatableTopic(name=topic, num_partitions=3, replication_factor=1),)
    answer = wire.ask(build.CreateTopicsRequest(topics=topics, timeout=10_000))
    return ErrorCode(answer.topics[0].error_code)


def produce(wire: Wire, topic: str, index: int) -> ErrorCode:
    build = wire.request(PRODUCE, 9)
    partition = build.PartitionProduceData(
        index=index, records=build_batch([Record(0, 1, b"k", b"v")])
    )
    data = (build.TopicProduceData(name=topic, partition_data=(partition,)),)
    answer = wire.ask(build.ProduceRequest(acks=-1, timeout=10_000, topic_data=data))
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def test_a_topic_made_meanwhile_leads_as_soon_as_files_can_be_opened(
    new_broker: Callable[..., Any],
) -> None:
    broker = new_broker()
    pid = broker.process.pid
    with Wire(broker.bootstrap) as wire:
        # So that the broker has imported what it needs.
        assert create(wire, "before") is ErrorCode.none
        assert produce(wire, "before", 0) is ErrorCode.none
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        # Below the number of any file that it could open.
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
        assert create(wire, "meanwhile") is ErrorCode.none
        assert produce(wire, "meanwhile", 0) is ErrorCode.not_leader_or_follower
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        until = time.monotonic() + WITHIN_S
        for index in range(3):
            while (code := produce(wire, "meanwhile", index)) is not ErrorCode.none:
                assert code is ErrorCode.not_leader_or_follower
                assert time.monotonic() < until
                time.sleep(0.05)
    lines = [line for line in broker.said().splitlines() if "cannot open meanwhile-" in line]
    assert len(lines) == 1
    assert "Too many open files" in lines[0]
    assert broker.stop() == 0
