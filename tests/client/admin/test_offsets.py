"""Offsets of many partitions at once, from leaders that answer well, late, or not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.answers import offsets
from tests.client.fake_cluster import FakeCluster, silent

from ottla.client.admin.offsets import (
    EARLIEST,
    LATEST,
    LIST_OFFSETS,
    end_offsets,
    first_offsets,
    known_offsets,
    offsets_at,
    stable_offsets,
)
from ottla.client.errors import ClientError
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
BOTH = [T0, T1]
FIRST, END = {T0: 3, T1: 0}, {T0: 9, T1: 5}


def refusing(code: ErrorCode) -> Any:
    """The answer of a leader that refuses one partition."""

    def answer(address: str, request: Any) -> Any:
        build = messages_of(LIST_OFFSETS, request.__version__)
        partition = build.ListOffsetsPartitionResponse(partition_index=1, error_code=code)
        topic = build.ListOffsetsTopicResponse(name="t", partitions=(partition,))
        return build.ListOffsetsResponse(topics=(topic,))

    return answer


def test_each_leader_is_asked_about_its_partitions() -> None:
    cluster = FakeCluster({LIST_OFFSETS: [offsets(FIRST, END)]})
    assert first_offsets(cluster.client(), BOTH) == FIRST
    assert cluster.asked_of(LIST_OFFSETS) == ["b1:9092", "b2:9092"]


def test_the_end_for_readers_of_committed_records() -> None:
    isolations = []

    def answer(address: str, request: Any) -> Any:
        isolations.append(request.isolation_level)
        return offsets(FIRST, END)(address, request)

    cluster = FakeCluster({LIST_OFFSETS: [answer]})
    assert stable_offsets(cluster.client(), BOTH) == END
    assert end_offsets(cluster.client(), BOTH) == END
    assert isolations == [1, 1, 0, 0]


def test_after_the_last_record_a_time_is_the_end() -> None:
    cluster = FakeCluster({LIST_OFFSETS: [offsets(FIRST, END, {T0: 4, T1: -1})]})
    assert offsets_at(cluster.client(), BOTH, 1_700_000_000_000) == {T0: 4, T1: 5}


def test_a_leader_that_has_not_opened_its_partition_is_asked_again() -> None:
    late = refusing(ErrorCode.not_leader_or_follower)
    cluster = FakeCluster({LIST_OFFSETS: [late, offsets(FIRST, END)]})
    assert end_offsets(cluster.client(), [T1]) == {T1: 5}
    assert cluster.slept_s > 0


@pytest.mark.parametrize(
    ("partition", "reason"),
    [
        (TopicPartition("t", 2), "t-2: leader not available"),
        (TopicPartition("u", 0), "u-0: unknown topic or partition"),
    ],
)
def test_a_partition_without_a_leader_has_a_reason(partition: TopicPartition, reason: str) -> None:
    client = FakeCluster({LIST_OFFSETS: [offsets(FIRST, END)]}).client()
    with pytest.raises(ClientError, match=f"cannot read the offsets of {reason}"):
        end_offsets(client, [partition])


def test_what_is_known_is_returned_despite_a_silent_leader() -> None:
    cluster = FakeCluster({LIST_OFFSETS: [offsets(FIRST, END), silent, offsets(FIRST, END)]})
    (first, end), why = known_offsets(cluster.client(answer_s=1.0), BOTH, EARLIEST, LATEST)
    assert (first, end) == ({T0: 3}, {T0: 9})
    assert why == {T1: "no response from its leader within 1 s"}
    assert cluster.asked_of(LIST_OFFSETS) == ["b1:9092", "b2:9092", "b1:9092"]
