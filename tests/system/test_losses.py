"""What retention is said to remove, beside what it does remove."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Producer

from ottla.client.admin.losses import losses_of
from ottla.client.admin.offsets import first_offsets
from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition

WITHIN_MS = 20_000
RETENTION_MS = 4000


def test_no_record_goes_before_the_time_that_is_said(new_broker: Any) -> None:
    broker = new_broker("--config", "log.retention.check.interval.ms=100")
    partition = TopicPartition("t", 0)
    with Client(broker.bootstrap) as client:
        settings = {"retention.ms": str(RETENTION_MS), "segment.ms": "200"}
        create_topics(client, [NewTopic("t", 1, 1, settings=settings)])
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for _ in range(3):
            producer.produce("t", b"x", partition=0)
            producer.flush()
            time.sleep(0.3)
        at_ms = int(time.time() * 1000)
        said = [losses_of(client, {partition: each}, WITHIN_MS, at_ms)[0] for each in range(3)]
        assert [each.records for each in said] == [3, 2, 1]
        goes_in = [each.goes_in_ms for each in said if each.goes_in_ms is not None]
        assert len(goes_in) == 3
        assert goes_in == sorted(goes_in)
        assert all(0 <= each <= RETENTION_MS for each in goes_in)
        gone: dict[int, int] = {}
        while len(gone) < 3:
            start = first_offsets(client, [partition])[partition]
            after_ms = int(time.time() * 1000) - at_ms
            assert after_ms < WITHIN_MS
            gone |= {each: after_ms for each in range(start) if each not in gone}
            time.sleep(0.02)
        assert all(gone[each] >= goes_in[each] for each in range(3)), (gone, goes_in)
        (lost,) = losses_of(client, {partition: 1}, WITHIN_MS, at_ms)
        assert (lost.removed, lost.records) == (2, 0)
