"""OffsetDelete."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.groups.offsets.commit import CommitRequest, OffsetToCommit
from ottla.protocol.errors import ErrorCode


async def delete(api: Any, topic: str, partitions: tuple[int, ...], group: str = "g") -> Any:
    asked = api.struct(
        "OffsetDeleteRequestTopic",
        47,
        0,
        name=topic,
        partitions=tuple(
            api.struct("OffsetDeleteRequestPartition", 47, 0, partition_index=index)
            for index in partitions
        ),
    )
    return await api.ask("offset_delete", 0, group_id=group, topics=(asked,))


async def test_offsets_of_existing_partitions_are_deleted(api: Any) -> None:
    await api.commit(9, 42)
    answer = await delete(api, "t", (5, 0, 1))
    found = [(each.partition_index, each.error_code) for each in answer.topics[0].partitions]
    none, unknown = ErrorCode.none, ErrorCode.unknown_topic_or_partition
    assert (answer.error_code, found) == (none, [(5, unknown), (0, none), (1, none)])
    assert await api.groups.fetch_all("g") == {}


async def test_offsets_of_subscribed_topics_are_kept(api: Any) -> None:
    member = await api.stable()
    await api.commit(9, 42, generation_id_or_member_epoch=1, member_id=member)
    answer = await delete(api, "t", (0,))
    partition = answer.topics[0].partitions[0]
    assert partition.error_code is ErrorCode.group_subscribed_to_topic
    assert (await api.groups.fetch_all("g"))["t"][0].offset == 42


@pytest.mark.parametrize(
    ("group", "error"),
    [("", ErrorCode.invalid_group_id), ("unknown", ErrorCode.group_id_not_found)],
)
async def test_unknown_groups(api: Any, group: str, error: ErrorCode) -> None:
    answer = await delete(api, "t", (0,), group)
    assert (answer.error_code, answer.topics) == (error, ())


async def test_many_partitions_are_deleted_in_parts(api: Any) -> None:
    api.image.apply(api.topic_created("many", 5_000))
    offsets = tuple(OffsetToCommit("many", None, index, 7, -1, "") for index in range(5_000))
    await api.groups.commit(CommitRequest("g", -1, "", None, -1, offsets, 9))
    answer = await delete(api, "many", (*range(5_000), *range(20_000)))
    errors = [each.error_code for each in answer.topics[0].partitions]
    unknown = [ErrorCode.unknown_topic_or_partition] * 15_000
    assert errors == [ErrorCode.none] * 10_000 + unknown
    assert await api.groups.fetch_all("g") == {}
    assert api.most_calls < 60_000
