"""A new query starts at the offsets that are written into its checkpoint."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from ottla.pipelines import PipelineError
from ottla.pipelines.kafka.brokers import TopicState, look_up
from ottla.pipelines.kafka.settings import read_settings
from ottla.pipelines.source.source import Source
from ottla.pipelines.source.starting_offsets import (
    read_starting,
    starting_offsets,
)

STATE = TopicState("flights", "id", {0: 5, 1: 0}, {0: 9, 1: 0})


def source(starting: Any, servers: str = "localhost:9092", name: str = "flights") -> Source:
    return Source(name, read_settings(servers), {}, read_starting(starting))


def test_each_way_to_start_gives_offsets() -> None:
    assert starting_offsets(source("earliest"), STATE) == {0: 5, 1: 0}
    assert starting_offsets(source("latest"), STATE) == {0: 9, 1: 0}
    assert starting_offsets(source({0: 7, 1: 0}), STATE) == {0: 7, 1: 0}


def test_a_time_gives_the_offsets_since_then(bootstrap: str, new_topic: Callable[..., str]) -> None:
    from confluent_kafka import Producer

    name = new_topic()
    producer = Producer({"bootstrap.servers": bootstrap})
    for second in range(10):
        producer.produce(name, b"x", partition=0, timestamp=1_700_000_000_000 + second * 1_000)
    assert producer.flush(30) == 0

    since = source(datetime.fromtimestamp(1_700_000_007, UTC), bootstrap, name)
    state = look_up(since.kafka, [name]).topics[name]
    assert starting_offsets(since, state) == {0: 7, 1: 0}


@pytest.mark.parametrize(
    ("starting", "words"),
    [
        ({0: 5}, "names the partitions 0; the topic flights has 0, 1"),
        ({0: 5, 1: 0, 2: 0}, "names the partitions 0, 1, 2; the topic flights has 0, 1"),
        ({0: 4, 1: 0}, "partition 0 of the topic flights holds the offsets 5 to 9"),
        ({0: 5, 1: 1}, "partition 1 of the topic flights holds the offsets 0 to 0"),
    ],
)
def test_offsets_that_the_topic_does_not_hold_are_refused(starting: Any, words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        starting_offsets(source(starting), STATE)


@pytest.mark.parametrize(
    ("starting", "words"),
    [
        ("yesterday", "write 'earliest', 'latest', 'table', a datetime, or an offset"),
        ({}, "write 'earliest'"),
        ({"0": 5}, "write 'earliest'"),
        ({0: -2}, "write 'earliest'"),
        (17, "write 'earliest'"),
        (datetime(2026, 1, 1), "has no time zone"),
    ],
)
def test_what_is_no_start_is_refused_in_one_line(starting: Any, words: str) -> None:
    with pytest.raises(PipelineError, match=words) as caught:
        read_starting(starting)
    assert "\n" not in str(caught.value)
