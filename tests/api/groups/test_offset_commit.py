"""OffsetCommit in all its versions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.protocol.errors import ErrorCode

OK = ErrorCode.none


def errors(answer: Any) -> list[tuple[int, ErrorCode]]:
    (topic,) = answer.topics
    return [(each.partition_index, each.error_code) for each in topic.partitions]


@pytest.mark.parametrize("version", range(2, 11))
async def test_offsets_of_existing_partitions_are_committed(api: Any, version: int) -> None:
    answer = await api.commit(version, 42)
    assert errors(answer) == [(0, OK), (5, ErrorCode.unknown_topic_or_partition)]
    (offset,) = (await api.groups.fetch_all("g"))["t"]
    assert (offset.offset, offset.metadata) == (42, "note")
    assert offset.leader_epoch == (3 if version >= 6 else -1)


@pytest.mark.parametrize(
    ("version", "error"), [(8, ErrorCode.illegal_generation), (9, ErrorCode.group_id_not_found)]
)
async def test_an_unknown_group(api: Any, version: int, error: ErrorCode) -> None:
    answer = await api.commit(version, 42, generation_id_or_member_epoch=1, member_id="m")
    assert errors(answer) == [(0, error), (5, ErrorCode.unknown_topic_or_partition)]


async def test_a_former_owner(api: Any) -> None:
    member = await api.stable()
    answer = await api.commit(9, 1, generation_id_or_member_epoch=1, member_id=member)
    assert errors(answer)[0] == (0, OK)
    answer = await api.commit(9, 1, generation_id_or_member_epoch=0, member_id=member)
    assert errors(answer)[0] == (0, ErrorCode.illegal_generation)
    answer = await api.commit(9, 1, generation_id_or_member_epoch=1, member_id="other")
    assert errors(answer)[0] == (0, ErrorCode.unknown_member_id)


async def test_unknown_topics(api: Any) -> None:
    partition = api.struct("OffsetCommitRequestPartition", 8, 9, partition_index=0)
    topic = api.struct("OffsetCommitRequestTopic", 8, 9, name="no", partitions=(partition,))
    answer = await api.commit(9, 1, topics=(topic,))
    assert errors(answer) == [(0, ErrorCode.unknown_topic_or_partition)]
    partition = api.struct("OffsetCommitRequestPartition", 8, 10, partition_index=0)
    for topic_id in (UUID(int=99), None):
        topic = api.struct(
            "OffsetCommitRequestTopic", 8, 10, topic_id=topic_id, partitions=(partition,)
        )
        answer = await api.commit(10, 1, topics=(topic,))
        assert errors(answer) == [(0, ErrorCode.unknown_topic_id)]
        assert answer.topics[0].topic_id == topic_id


async def test_a_retention_time_from_the_client(api: Any) -> None:
    await api.commit(4, 1, retention_time=60_000)
    (_, value) = next(api.shard.offsets.all())
    assert value.expire_timestamp_ms == 61_000


def many_offsets(api: Any, count: int) -> Any:
    """The request's partition 0, `count` times."""
    partition = api.struct(
        "OffsetCommitRequestPartition", 8, 9,
        partition_index=0, committed_offset=7, committed_metadata="",
    )  # fmt: skip
    return (
        api.struct("OffsetCommitRequestTopic", 8, 9, name="t", partitions=(partition,) * count),
    )


async def test_a_large_commit_is_made_in_slices_and_stored_at_once(api: Any) -> None:
    answer = await api.commit(9, 1, topics=many_offsets(api, 15_000))
    assert errors(answer) == [(0, OK)] * 15_000
    (log,) = (log for log in api.logs.values() if log.records)
    assert len(log.records) == 15_000
    assert api.most_calls < 200_000, "the records are appended and applied in one go"


async def test_more_offsets_than_a_batch_has_room_for(api: Any) -> None:
    """Kafka's error for a commit whose batch is too large."""
    answer = await api.commit(9, 1, topics=many_offsets(api, 20_001))
    assert errors(answer) == [(0, ErrorCode.unknown_server_error)] * 20_001
    assert await api.groups.fetch_all("g") == {}
    assert api.most_calls < 50_000


async def test_many_unknown_partitions_are_answered_in_slices(api: Any) -> None:
    partition = api.struct("OffsetCommitRequestPartition", 8, 9, partition_index=9)
    topics = (
        tuple(
            api.struct(
                "OffsetCommitRequestTopic", 8, 9, name=name, partitions=(partition,) * 20_000
            )
            for name in ("t", "no")
        )
        + (api.struct("OffsetCommitRequestTopic", 8, 9, name="no", partitions=()),) * 20_000
    )
    answer = await api.commit(9, 1, topics=topics)
    unknown = ErrorCode.unknown_topic_or_partition
    for topic in answer.topics[:2]:
        assert [each.error_code for each in topic.partitions] == [unknown] * 20_000
    assert api.most_calls < 50_000
