"""The groups of every broker, and what they have committed for one partition."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster, silent

from ottla.client.admin.committed_offsets import (
    LIST_GROUPS,
    OFFSET_FETCH,
    Commit,
    committed_offsets,
)
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of

PARTITION = TopicPartition("t", 1)
OF_BROKER = {"b1:9092": ("a", "none"), "b2:9092": ("b",)}
OFFSETS = {"a": 5, "b": 9, "none": -1}


def groups(address: str, request: Any) -> Any:
    build = messages_of(LIST_GROUPS, request.__version__)
    return build.ListGroupsResponse(
        error_code=ErrorCode.none,
        groups=tuple(
            build.ListedGroup(group_id=each, protocol_type="consumer", group_state="Stable")
            for each in OF_BROKER[address]
        ),
    )


def commits(code: ErrorCode = ErrorCode.none) -> Any:
    def answer(address: str, request: Any) -> Any:
        build = messages_of(OFFSET_FETCH, request.__version__)
        if request.__version__ < 8:
            (topic,) = request.topics
            partition = build.OffsetFetchResponsePartition(
                partition_index=topic.partition_indexes[0],
                committed_offset=OFFSETS[request.group_id],
                metadata=None,
                error_code=ErrorCode.none,
            )
            topics = (build.OffsetFetchResponseTopic(name="t", partitions=(partition,)),)
            return build.OffsetFetchResponse(topics=topics, error_code=code)
        return build.OffsetFetchResponse(
            groups=tuple(
                build.OffsetFetchResponseGroup(
                    group_id=each.group_id,
                    error_code=code,
                    topics=(
                        build.OffsetFetchResponseTopics(
                            name="t",
                            partitions=(
                                build.OffsetFetchResponsePartitions(
                                    partition_index=1,
                                    committed_offset=OFFSETS[each.group_id],
                                    committed_leader_epoch=3,
                                    metadata="m",
                                    error_code=ErrorCode.none,
                                ),
                            ),
                        ),
                    ),
                )
                for each in request.groups
            )
        )

    return answer


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster({LIST_GROUPS: [groups], OFFSET_FETCH: [commits()]})


def test_every_brokers_groups_are_asked_for(cluster: FakeCluster) -> None:
    found = committed_offsets(cluster.client(), PARTITION)
    assert found == ({"a": Commit(5, "m", 3), "b": Commit(9, "m", 3)}, ())
    assert cluster.asked_of(OFFSET_FETCH) == ["b1:9092", "b2:9092"]


def test_an_old_broker_is_asked_about_one_group_after_the_other(cluster: FakeCluster) -> None:
    cluster.versions["b1:9092"] = {OFFSET_FETCH: (0, 7)}
    found = committed_offsets(cluster.client(), PARTITION)
    assert found.by_group["a"] == Commit(5, "", -1)
    assert found.by_group.keys() == {"a", "b"}
    assert cluster.asked_of(OFFSET_FETCH) == ["b1:9092", "b1:9092", "b2:9092"]


def test_a_broker_that_does_not_answer_is_named(cluster: FakeCluster) -> None:
    cluster.answers[LIST_GROUPS] = [silent, groups]
    found = committed_offsets(cluster.client(), PARTITION)
    assert found == ({"b": Commit(9, "m", 3)}, (1,))


def test_a_broker_that_refuses_is_named(cluster: FakeCluster) -> None:
    cluster.answers[OFFSET_FETCH] = [commits(ErrorCode.coordinator_load_in_progress)]
    assert committed_offsets(cluster.client(), PARTITION) == ({}, (1, 2))
