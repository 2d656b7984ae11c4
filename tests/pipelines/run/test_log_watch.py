"""A running query notices that its topic has other records than it has read."""

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.pipelines.checkpoint.memory_folder import MemoryFolder

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.brokers import Brokers
from ottla.pipelines.kafka.settings import read_settings
from ottla.pipelines.run.log_watch import INTERVAL_S, LogWatch, replaced_records
from ottla.pipelines.source.source import Source

PARTITIONS = [0, 1]


def batch(topic: str, begin: int, end: int) -> Any:
    """A batch of both partitions."""
    ends = dict.fromkeys(PARTITIONS, end)
    span = dict.fromkeys(PARTITIONS, begin), ends
    return SimpleNamespace(ends=lambda: {topic: ends}, range_of=lambda _: span)


def records(word: str, count: int) -> list[tuple[str, str]]:
    return [(f"{word}{number}", word) for number in range(count)]


def create_again(bootstrap: str, topic: str) -> None:
    """As brokers whose disks were set back: they have the topic, without its records."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(10)
    until = time.monotonic() + 30
    while topic in admin.list_topics(timeout=10).topics and time.monotonic() < until:
        time.sleep(0.02)
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(10)


def test_records_that_took_the_offsets_of_others_are_noticed(
    bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None]
) -> None:
    topic, now = new_topic(partitions=2), [0.0]
    kafka = read_settings(bootstrap)
    sources, folder, brokers = [Source(topic, kafka, {})], MemoryFolder(), Brokers(kafka)
    ids = {topic: "one id"}
    watch = LogWatch(folder, ids, lambda _: brokers, lambda: now[0])
    for partition in PARTITIONS:
        produce(topic, records("a", 3), partition=partition)
    watch.check(sources, batch(topic, 0, 3))
    for partition in PARTITIONS:
        produce(topic, records("b", 3), partition=partition)
    now[0] += INTERVAL_S
    watch.check(sources, batch(topic, 3, 6))
    assert replaced_records(folder, sources, ids) == {topic: {}}
    kept = dict(folder.texts)

    create_again(bootstrap, topic)
    produce(topic, records("c", 9), partition=1)
    assert replaced_records(folder, sources, ids) == {topic: {1: 0}}
    assert replaced_records(folder, sources, {topic: "another id"}) == {}
    watch.check(sources, batch(topic, 6, 9))  # not yet again
    now[0] += INTERVAL_S
    watch.check(sources, batch(topic, 0, 9))  # nothing of it was read before
    folder.texts = kept
    now[0] += INTERVAL_S
    with pytest.raises(PipelineError, match=r"from offset 0 of partition 1 on: .*batch is not"):
        watch.check(sources, batch(topic, 6, 9))


def test_brokers_that_cannot_say_it_keep_no_batch() -> None:
    def refuse(_: Any) -> Any:
        raise PipelineError("The brokers at b:9092 refuse the look-up: Unsupported version")

    folder = MemoryFolder()
    brokers: Any = SimpleNamespace(newest=refuse)
    watch = LogWatch(folder, {"t": "id"}, lambda _: brokers)
    watch.check([Source("t", read_settings("b:9092"), {})], batch("t", 0, 3))
    assert folder.texts == {}
