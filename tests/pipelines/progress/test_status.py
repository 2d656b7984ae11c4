"""A pipeline as the broker knows it."""

import time
from collections.abc import Callable

from ottla.pipelines.progress.commits import Delivered
from ottla.pipelines.progress.group import Commit, Group
from ottla.pipelines.progress.starting_run import new_run
from ottla.pipelines.progress.status import Lag, read_lag, read_status


def test_a_group_without_commits_has_no_pipeline(bootstrap: str) -> None:
    status = read_status({"bootstrap.servers": bootstrap}, "nobody-commits-here")
    assert (status.offsets, status.metadata, status.lag) == ({}, None, None)


def test_state_place_and_lag_come_from_the_broker(
    bootstrap: str,
    new_topic: Callable[..., str],
    new_group: Callable[[], Group],
    produce: Callable[..., None],
) -> None:
    topic, group, run = new_topic(), new_group(), new_run("running")
    produce(topic, [(None, "a")] * 5, partition=0)
    delivered = Delivered("flights", "id-1", 3, {topic: {0: 2, 1: 0}}, "/lake/flights", 4)
    group.commit(delivered.commits(run))

    status = read_status({"bootstrap.servers": bootstrap}, group.name)

    assert status.offsets == {(topic, 0): 2, (topic, 1): 0}
    assert status.metadata is not None
    assert (status.metadata.batch, status.metadata.version, status.metadata.run) == (3, 4, run)
    assert status.lag is not None
    assert status.lag.messages == 3
    assert status.lag.age_ms is not None
    assert 0 <= status.lag.age_ms < 120_000


def test_age_is_that_of_the_oldest_message_not_delivered(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    from confluent_kafka import Producer

    topic = new_topic()
    producer = Producer({"bootstrap.servers": bootstrap})
    now_ms = int(time.time() * 1_000)
    for partition, hours in ((0, 9), (0, 2), (1, 1)):
        at_ms = now_ms - hours * 3_600_000
        producer.produce(topic, b"x", partition=partition, timestamp=at_ms)
        producer.flush(30)

    lag = read_lag({"bootstrap.servers": bootstrap}, {(topic, 0): 1, (topic, 1): 0})

    assert lag.messages == 2
    assert lag.age_ms is not None
    assert lag.age_ms // 3_600_000 == 2


def test_nothing_is_behind_at_the_end(bootstrap: str, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    lag = read_lag({"bootstrap.servers": bootstrap}, {(topic, 0): 0, (topic, 1): 0})
    assert lag == Lag(0, 0)


def test_commits_of_others_are_a_place_without_a_pipeline(
    bootstrap: str, new_topic: Callable[..., str], new_group: Callable[[], Group]
) -> None:
    topic, group = new_topic(), new_group()
    group.commit({(topic, 0): Commit(0, "someone else's")})
    status = read_status({"bootstrap.servers": bootstrap}, group.name)
    assert status.metadata is None
    assert status.lag == Lag(0, 0)


def test_partitions_that_were_added_are_behind(
    bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None]
) -> None:
    """No batch has committed an offset of them yet, and the next one reads them from 0."""
    topic = new_topic()
    produce(topic, [(None, "a")] * 5, partition=0)
    produce(topic, [(None, "b")] * 4, partition=1)
    lag = read_lag({"bootstrap.servers": bootstrap}, {(topic, 0): 2})
    assert (lag.messages, lag.age_ms is not None) == (7, True)
