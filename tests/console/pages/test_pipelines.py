"""Pipelines, as their commits say it."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from tests.console.served_console import Visitor

from ottla.client.admin.committed_offsets import commit_offsets
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.pipelines.destination import Destination
from ottla.pipelines.progress.offset_metadata import OffsetMetadata, Run
from ottla.pipelines.rejected_offsets import RejectedOffsets, RejectedRange
from ottla.testing import Topic

EVIL = "<script>alert(1)</script>"


def run(**changes: Any) -> Run:
    now_ms = int(time.time() * 1000)
    told: dict[str, Any] = {
        "id": "9f2c41d0",
        "state": "running",
        "host": "etl-3",
        "pid": 4711,
        "since_ms": now_ms - 60_000,
        "seen_ms": now_ms,
        "every_s": 10,
    }
    return Run(**{**told, **changes})


def committed(topic: Topic, group: str, metadata: OffsetMetadata, offset: int) -> None:
    key = TopicPartition(topic.name, 0)
    with Client(topic.bootstrap) as client:
        assert not commit_offsets(client, group, {key: offset}, {key: metadata.text()})


@pytest.fixture
def group(ottla_topic: Topic) -> str:
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    for number in range(10):
        producer.produce(ottla_topic.name, str(number), partition=0)
    producer.flush()
    return f"pipe-{uuid4().hex}"


def test_a_pipeline_has_its_state_batches_lag_and_rejects(
    visitor: Visitor, ottla_topic: Topic, group: str
) -> None:
    rejected = RejectedOffsets((RejectedRange(2, 5, f"no key {EVIL}"),), "flights_rejected")
    metadata = OffsetMetadata(
        f"flights {EVIL}",
        "id-1",
        7,
        "/lake/flights",
        9,
        run(batch_at_ms=int(time.time() * 1000), batch_ms=410, rows=120, rejected=3),
        Destination("delta", "/lake/flights", rows="upsert", called="Delta"),
        rejected,
    )
    committed(ottla_topic, group, metadata, 6)
    listed = visitor.get(f"/pipelines?q={group}")
    assert f"flights {EVIL} {group} running {ottla_topic.name} 4 7" in listed.words
    assert "Delta /lake/flights version 9" in listed.words
    page = visitor.get(f"/pipeline?name={group}")
    for words in (
        "running Lag 4 Lag in time",
        "Batch 7",
        "410 ms",
        f"no key {EVIL} 3",
        "kept in flights_rejected",
        "version 9",
        "on etl-3, pid 4711",
    ):
        assert words in page.words, (words, page.words)
    assert EVIL not in listed.text + page.text


def test_one_that_has_failed_or_is_silent_says_so(
    visitor: Visitor, ottla_topic: Topic, group: str
) -> None:
    metadata = OffsetMetadata("q", "id", 1, run=run(state="failed", failure="The disk is full."))
    committed(ottla_topic, group, metadata, 1)
    failed = visitor.get(f"/pipeline?name={group}").words
    assert "It has failed The disk is full." in failed
    committed(ottla_topic, group, OffsetMetadata("q", "id", 2, run=run(seen_ms=1)), 2)
    assert "although it reports every 10 seconds" in visitor.get(f"/pipeline?name={group}").words
    assert "silent" in visitor.get(f"/pipelines?q={group}").words


def test_one_that_only_starts_is_there(visitor: Visitor, ottla_topic: Topic, group: str) -> None:
    committed(ottla_topic, f"{group}.run", OffsetMetadata("q", "", run=run(state="starting")), 0)
    assert f"q {group} starting" in visitor.get(f"/pipelines?q={group}").words
    page = visitor.get(f"/pipeline?name={group}")
    assert page.status == 200
    assert "starting" in page.words


def test_other_groups_are_no_pipelines(visitor: Visitor) -> None:
    gone = visitor.get("/pipeline?name=no-such")
    assert gone.status == 404
    assert "All pipelines are listed under Pipelines." in gone.words
    assert "No pipeline's name contains" in visitor.get("/pipelines?q=no-such-name").words
