"""The leader is asked for stored batches, as consumers ask it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster

from ottla.client.admin.records import (
    EARLIEST,
    FETCH,
    LIST_OFFSETS,
    AbortedTransaction,
    fetch_batches,
    offset_at,
)
from ottla.client.errors import RefusedError
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of

PARTITION = TopicPartition("t", 1)


def offsets(code: ErrorCode = ErrorCode.none) -> Any:
    def answer(address: str, request: Any) -> Any:
        build = messages_of(LIST_OFFSETS, request.__version__)
        partition = build.ListOffsetsPartitionResponse(
            partition_index=1, error_code=code, timestamp=-1, offset=17, leader_epoch=0
        )
        topic = build.ListOffsetsTopicResponse(name="t", partitions=(partition,))
        return build.ListOffsetsResponse(topics=(topic,))

    return answer


def fetched(
    data: bytes, code: ErrorCode = ErrorCode.none, stable: int = 90, *, aborted: bool = False
) -> Any:
    def answer(address: str, request: Any) -> Any:
        build = messages_of(FETCH, request.__version__)
        some = (build.AbortedTransaction(producer_id=7, first_offset=3),)
        partition = build.PartitionData(
            partition_index=1,
            error_code=code,
            high_watermark=100,
            last_stable_offset=stable,
            log_start_offset=0,
            aborted_transactions=some if aborted else None,
            records=data,
        )
        topic = build.FetchableTopicResponse(topic="t", partitions=(partition,))
        return build.FetchResponse(responses=(topic,))

    return answer


def test_the_leader_tells_its_offsets() -> None:
    cluster = FakeCluster({LIST_OFFSETS: [offsets()]})
    assert offset_at(cluster.client(), 2, PARTITION, EARLIEST) == 17
    assert cluster.asked_of(LIST_OFFSETS) == ["b2:9092"]
    (request,) = cluster.requests(LIST_OFFSETS)
    (topic,) = request.topics
    (partition,) = topic.partitions
    assert (topic.name, partition.partition_index, partition.timestamp) == ("t", 1, EARLIEST)


def test_a_refused_question_names_the_partition() -> None:
    cluster = FakeCluster({LIST_OFFSETS: [offsets(ErrorCode.not_leader_or_follower)]})
    with pytest.raises(RefusedError, match="cannot read the offsets of t-1: not leader"):
        offset_at(cluster.client(), 2, PARTITION, EARLIEST)


def test_batches_come_with_the_aborted_transactions() -> None:
    cluster = FakeCluster({FETCH: [fetched(b"batches", aborted=True)]})
    found = fetch_batches(cluster.client(), 2, PARTITION, 5)
    assert found == (100, 90, (AbortedTransaction(7, 3),), b"batches")
    (request,) = cluster.requests(FETCH)
    (topic,) = request.topics
    (partition,) = topic.partitions
    assert (topic.topic, partition.partition, partition.fetch_offset) == ("t", 1, 5)
    assert (request.__version__, request.max_wait) == (12, request.max_wait.__class__(0))


def test_records_after_the_last_stable_offset_are_read_uncommitted() -> None:
    cluster = FakeCluster({FETCH: [fetched(b""), fetched(b"open", stable=-1)]})
    found = fetch_batches(cluster.client(), 2, PARTITION, 95)
    assert (found.data, found.last_stable_offset) == (b"open", 90)
    levels = [int(each.isolation_level) for each in cluster.requests(FETCH)]
    assert levels == [1, 0]


def test_an_offset_outside_the_log_is_refused() -> None:
    cluster = FakeCluster({FETCH: [fetched(b"", ErrorCode.offset_out_of_range)]})
    with pytest.raises(RefusedError) as refused:
        fetch_batches(cluster.client(), 2, PARTITION, 5_000)
    assert refused.value.code is ErrorCode.offset_out_of_range
