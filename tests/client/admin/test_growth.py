"""When retention.bytes removes records, if a partition grows as it did lately."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer

from ottla.client.admin.configs import alter_settings
from ottla.client.admin.growth import HOUR_MS, Growth, growths
from ottla.client.admin.losses import DAY_MS, losses_of
from ottla.client.admin.offsets import EARLIEST, LATEST, known_offsets
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.testing import Topic

HOURLY = Growth(1_000, 2_000, 100_000, 50_000, 100 / HOUR_MS)
"""Records of 100 bytes, 100 an hour; the last 500 are kept."""


@pytest.mark.parametrize(
    ("offset", "hours"), [(1_000, 0), (1_499, 0), (1_500, 0.01), (1_599, 1), (1_999, 5)]
)
def test_when_a_record_goes(offset: int, hours: float) -> None:
    found = HOURLY.goes_in_ms(offset)
    assert found is not None
    assert abs(found - hours * HOUR_MS) <= 0.01 * HOUR_MS + 1


@pytest.mark.parametrize(
    ("within_ms", "survivor"), [(0, 1_500), (HOUR_MS, 1_600), (100 * HOUR_MS, 2_000)]
)
def test_what_is_kept(within_ms: int, survivor: int) -> None:
    assert HOURLY.survivor(within_ms) == survivor


def test_nothing_goes_while_nothing_is_written() -> None:
    still = HOURLY._replace(records_per_ms=0.0)
    assert (still.survivor(DAY_MS), still.goes_in_ms(1_499)) == (1_500, 0)
    assert still.goes_in_ms(1_500) is None
    small = still._replace(keeps_bytes=1_000_000)
    assert small.survivor(DAY_MS) == 1_000
    assert Growth(5, 5, 0, 100, 0.0).survivor(DAY_MS) == 5


def test_a_partition_that_grows(ottla_topic: Topic) -> None:
    now_ms = int(time.time() * 1000)
    partition = TopicPartition(ottla_topic.name, 0)
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    for number in range(100):
        producer.produce(ottla_topic.name, b"x" * 1_000, partition=0, timestamp=now_ms - number)
    producer.flush()
    with Client(ottla_topic.bootstrap) as client:
        assert losses_of(client, {partition: 0}, DAY_MS, now_ms) == []
        alter_settings(client, "topic", ottla_topic.name, {"retention.bytes": "1000000"}, [])
        (starts, ends), _ = known_offsets(client, [partition], EARLIEST, LATEST)
        found, unsized = growths(client, {partition: 1_000_000}, starts, ends, now_ms)
        assert unsized == []
        growth = found[partition]
        assert 100_000 <= growth.size_bytes <= 120_000
        assert growth.records_per_ms == 100 / HOUR_MS
        # The log has 100 of about 1,000 records that are kept; 100 come in an hour.
        (loss,) = losses_of(client, {partition: 0}, DAY_MS, now_ms)
        assert loss.is_estimate
        assert loss.records == 100
        assert loss.goes_in_ms is not None
        assert 8 * HOUR_MS < loss.goes_in_ms < 10 * HOUR_MS
        assert "(an estimate: retention.bytes, by its growth)" in str(loss)
        assert losses_of(client, {partition: 0}, HOUR_MS, now_ms) == []
        assert losses_of(client, {partition: 100}, DAY_MS, now_ms) == []
