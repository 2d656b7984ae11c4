"""One partition: its records over time, and what retention removes when."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.console.served_console import FreshAccess, Visitor, serving

from ottla.client.admin.configs import alter_settings
from ottla.client.admin.own_requests import NotOttlaError
from ottla.client.admin.segments import Segment
from ottla.client.client import Client
from ottla.console.access import Access
from ottla.console.console import Console
from ottla.console.pages import partition
from ottla.console.pages.partition import (
    MAX_DRAWN,
    MIN_WIDTH,
    SPANS,
    WIDTH,
    bounds_of,
    drawn_segments,
    retention_ms_of,
    spans_between,
)
from ottla.testing import Broker, Topic

HOUR_MS = 3_600_000


def test_spans_are_equal_and_hold_every_offset() -> None:
    bounds = bounds_of(0, HOUR_MS)
    assert len(bounds) == SPANS + 1
    assert (bounds[0], bounds[-1]) == (0, HOUR_MS)
    assert bounds_of(5000, 4000) == [5000, 6000]
    spans = spans_between([0, 10, 20, 30], [5, 9, 7, 20], 100)
    assert [(each.begin, each.end, each.removed_ms) for each in spans] == [
        (5, 9, 100), (9, 9, 110), (9, 20, 120),
    ]  # fmt: skip
    assert [each.share for each in spans] == [4 / 11, 0, 1]
    assert spans_between([0, 10], [3, 3], None)[0].share == 0


def test_what_removes_by_age() -> None:
    assert retention_ms_of({"retention.ms": "5", "cleanup.policy": "delete"}) == 5
    assert retention_ms_of({"retention.ms": "5", "cleanup.policy": "compact"}) is None
    assert retention_ms_of({"retention.ms": "-1", "cleanup.policy": "compact,delete"}) is None


def test_a_partition_says_what_is_removed_when(visitor: Visitor, ottla_topic: Topic) -> None:
    page, now_ms = f"/topics/{ottla_topic.name}/partitions/0", int(time.time() * 1000)
    assert "It has no records." in visitor.get(page).words
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    for hours in (48, 30, 1):
        producer.produce(ottla_topic.name, "x", partition=0, timestamp=now_ms - hours * HOUR_MS)
    producer.flush()
    with Client(ottla_topic.bootstrap) as client:
        settings = {"retention.ms": str(1000 * HOUR_MS), "retention.bytes": "1000000"}
        alter_settings(client, "topic", ottla_topic.name, settings, [])
    found = visitor.get(page)
    assert found.status == 200
    assert "older than 41 days 16 h (retention.ms). It is removed" in found.words
    assert "without it (retention.bytes)" in found.words
    assert found.text.count("<rect") == 1
    assert "active" in found.words
    assert " UTC in 41 days" in found.words
    assert "MB more" in found.words or "KB more" in found.words
    assert f'href="{page}"' in visitor.get(f"/topics/{ottla_topic.name}/partitions").text
    gone = visitor.get(f"/topics/{ottla_topic.name}/partitions/9")
    assert gone.status == 404


def not_ottlas(*_: Any) -> Any:
    raise NotOttlaError("it is not.")


def test_brokers_that_list_no_segments_are_asked_seldom(
    ottla_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is cut into spans of time there."""
    asked: list[Any] = []

    def counted(*question: Any) -> Any:
        asked.append(question)
        not_ottlas()

    monkeypatch.setattr(partition, "segments_of", counted)
    producer, now_ms = Producer({"bootstrap.servers": ottla_topic.bootstrap}), time.time() * 1000
    producer.produce(ottla_topic.name, "x", timestamp=int(now_ms) - 30 * HOUR_MS)
    producer.flush()
    with serving(Console(Access(ottla_topic.bootstrap, {}, "tests"))) as visitor:
        for _ in range(2):
            found = visitor.get(f"/topics/{ottla_topic.name}/partitions/0")
            assert found.text.count("<rect") == SPANS
    assert len(asked) == 1


def test_each_segment_is_wide_enough_to_be_seen() -> None:
    sizes = (0, 10, 1000)
    segments = [
        Segment(at, at + 1, size, 5, None, None, is_active=False) for at, size in enumerate(sizes)
    ]
    drawn = drawn_segments(segments)
    assert [each.x for each in drawn[1:]] == [each.x + each.width for each in drawn[:-1]]
    assert drawn[0].width == MIN_WIDTH
    assert drawn[-1].x + drawn[-1].width == pytest.approx(WIDTH)
    assert drawn_segments([]) == []
    many = drawn_segments(segments * 100)
    assert len(many) == MAX_DRAWN
    assert min(each.width for each in many) >= MIN_WIDTH


def test_who_may_not_see_all_of_it_sees_the_rest(
    ottla_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition, "segments_of", not_ottlas)
    topic = ottla_broker.create_topic()
    topic.produce("a")
    denied = "TOPIC_AUTHORIZATION_FAILED"
    with serving(Console(FreshAccess(ottla_broker.bootstrap, {}, "unsighted"))) as visitor:
        for each in ("DescribeConfigs", "Fetch"):
            ottla_broker.fail(each, denied, client_id="unsighted")
        found = visitor.get(f"/topics/{topic.name}/partitions/0")
        assert found.status == 200
        assert "Cannot read the settings of topic" in found.words
        assert "or you may not read it" in found.words
        assert "End 1" in found.words
