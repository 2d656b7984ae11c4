"""Asking a partition's leader for its segments."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster, closing

from ottla.client.admin.own_requests import NotOttlaError
from ottla.client.admin.segments import Segment, Segments, segments_of
from ottla.client.errors import ClientError, RefusedError
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.versions import SEGMENTS

ONE = TopicPartition("t", 1)
SEGMENT = Segment(0, 10, 5, 30, None, 7, is_active=True)
FOUND = {
    "segments": 1, "broker": 2, "start_offset": 0, "end_offset": 10, "count": 1,
    "listed": [SEGMENT._asdict()],
}  # fmt: skip


def asked(document: Any, where: TopicPartition = ONE) -> Segments:
    def answer(address: str, body: bytes) -> bytes:
        assert address == "b2:9092"
        assert json.loads(body) == {"segments": 1, "topic": "t", "partition": 1}
        return json.dumps(document).encode()

    with FakeCluster({SEGMENTS: [answer]}).client() as client:
        return segments_of(client, where)


def error(code: str) -> dict[str, Any]:
    return {"segments": 1, "error": {"code": code, "message": f"it is {code}"}}


def test_the_leader_lists_them() -> None:
    assert asked(FOUND) == Segments(2, 1, [SEGMENT])


def test_errors_say_what_was_wrong() -> None:
    with pytest.raises(ClientError, match="segments of t-1: it is storage_error"):
        asked(error("storage_error"))
    with pytest.raises(RefusedError) as refused:
        asked(error("not_authorized"))
    assert refused.value.lacking == ("Describe", "topic", "t")
    with pytest.raises(ClientError, match="t-2: it has no leader"):
        asked(FOUND, TopicPartition("t", 2))
    others: list[Any] = [{"other": 1}, [], "x"]
    for other in others:
        with pytest.raises(NotOttlaError, match="not an Ottla"):
            asked(other)


def test_apache_kafka_closes_the_connection() -> None:
    cluster = FakeCluster({SEGMENTS: [closing]})
    with cluster.client() as client, pytest.raises(NotOttlaError, match="lists no segments"):
        segments_of(client, ONE)
