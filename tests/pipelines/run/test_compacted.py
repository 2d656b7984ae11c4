"""Deletions that a compacted topic may have forgotten, asked of a broker."""

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.pipelines.kafka.settings import read_settings
from ottla.pipelines.run.compacted import forgotten_deletions, unread_before

HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("at", "since", "is_before"),
    [
        ({0: 5}, {0: 5}, False),
        ({0: 5}, {0: 6}, True),
        ({0: 9}, {0: -1}, False),
        ({0: 8}, {0: -1}, True),
        ({0: 5, 1: 0}, {0: 5, 1: 1}, True),
    ],
)
def test_what_is_unread_before_a_time(
    at: dict[int, int], since: dict[int, int], *, is_before: bool
) -> None:
    assert unread_before(at, since, {0: 9, 1: 9}) == is_before


def test_only_a_compacted_topic_with_old_unread_records_forgets(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    now_ms = int(time.time() * 1_000)
    plain, name = new_topic(1), f"compacted-{now_ms}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    settings = {"cleanup.policy": "compact", "delete.retention.ms": str(2 * HOUR_MS)}
    admin.create_topics([NewTopic(name, 1, 1, config=settings)])[name].result(timeout=30)
    producer = Producer({"bootstrap.servers": bootstrap})
    for topic in (plain, name):
        for hours in (5, 3, 1):
            producer.produce(topic, b"v", b"k", partition=0, timestamp=now_ms - hours * HOUR_MS)
    assert producer.flush(30) == 0

    def said(topic: str, at: int, hours: int) -> str | None:
        last_ms = now_ms - hours * HOUR_MS
        return forgotten_deletions(
            read_settings(bootstrap), topic, {0: at}, last_ms, now_ms, "the table t"
        )

    sentence = said(name, 1, 4)
    assert sentence is not None
    assert f"Topic {name!r} is compacted and keeps tombstones for 2.0 h" in sentence
    assert "the last batch of this query began 4.0 h ago: deletions that" in sentence
    assert said(plain, 1, 4) is None
    assert said(name, 2, 4) is None, "what is unread is newer"
    assert said(name, 3, 4) is None, "nothing is unread"
    assert said(name, 1, 1) is None, "the query ran then"
