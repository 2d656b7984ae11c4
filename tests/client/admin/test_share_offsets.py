"""What is asked of a share group's coordinator, and what its answers mean."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster

from ottla.client.admin.share_offsets import (
    ALTER,
    DELETE,
    ShareOffset,
    alter_share_offsets,
    delete_share_offsets,
    share_commits_of,
    share_offsets,
)
from ottla.client.errors import RefusedError
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import DESCRIBE_SHARE_GROUP_OFFSETS

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.mark.parametrize("version", range(2))
def test_where_a_group_stands(version: int) -> None:
    def answer(address: str, request: Any) -> Any:
        assert (address, request.__version__) == ("b2:9092", version)
        (asked,) = request.groups
        assert (asked.group_id, asked.topics) == ("g", None)
        build = messages_of(DESCRIBE_SHARE_GROUP_OFFSETS, version)
        partitions = tuple(
            build.DescribeShareGroupOffsetsResponsePartition(
                partition_index=index, start_offset=start, leader_epoch=3, lag=lag
            )
            for index, start, lag in ((0, 5, 7), (1, -1, -1))
        )
        topic = build.DescribeShareGroupOffsetsResponseTopic(
            topic_name="t", topic_id=None, partitions=partitions
        )
        group = build.DescribeShareGroupOffsetsResponseGroup(group_id="g", topics=(topic,))
        return build.DescribeShareGroupOffsetsResponse(groups=(group,))

    cluster = FakeCluster({DESCRIBE_SHARE_GROUP_OFFSETS: [answer]})
    for address in ("b1:9092", "b2:9092"):
        cluster.versions[address] = {DESCRIBE_SHARE_GROUP_OFFSETS: (0, version)}
    assert share_offsets(cluster.client(), "g") == {
        T0: ShareOffset(5, 7 if version else None, 3),
        T1: ShareOffset(None, None, 3),
    }
    assert share_commits_of(cluster.client(), "g") == {T0: (5, "", 3)}


def test_offsets_are_altered() -> None:
    codes = {0: ErrorCode.none, 1: ErrorCode.unknown_topic_or_partition}

    def answer(address: str, request: Any) -> Any:
        build = messages_of(ALTER, 0)
        (topic,) = request.topics
        assert [(each.partition_index, each.start_offset) for each in topic.partitions] == [
            (0, 5), (1, 6),
        ]  # fmt: skip
        return build.AlterShareGroupOffsetsResponse(
            error_message=None,
            responses=(
                build.AlterShareGroupOffsetsResponseTopic(
                    topic_name=topic.topic_name,
                    topic_id=None,
                    partitions=tuple(
                        build.AlterShareGroupOffsetsResponsePartition(
                            partition_index=index, error_code=code
                        )
                        for index, code in codes.items()
                    ),
                ),
            ),
        )

    client = FakeCluster({ALTER: [answer]}).client()
    refused = alter_share_offsets(client, "g", {T0: 5, T1: 6})
    assert refused == {T1: ErrorCode.unknown_topic_or_partition}


def test_topics_are_forgotten() -> None:
    code = ErrorCode.none

    def answer(address: str, request: Any) -> Any:
        build = messages_of(DELETE, 0)
        return build.DeleteShareGroupOffsetsResponse(
            error_code=code,
            error_message=None,
            responses=tuple(
                build.DeleteShareGroupOffsetsResponseTopic(
                    topic_name=each.topic_name,
                    topic_id=None,
                    error_code=ErrorCode.unknown_topic_or_partition,
                )
                for each in request.topics
            ),
        )

    client = FakeCluster({DELETE: [answer]}).client()
    assert delete_share_offsets(client, "g", ["t"]) == {"t": ErrorCode.unknown_topic_or_partition}
    code = ErrorCode.non_empty_group
    with pytest.raises(RefusedError, match="cannot delete offsets of group 'g'"):
        delete_share_offsets(client, "g", ["t"])
