"""OffsetDelete."""

from __future__ import annotations

from typing import Any

import pytest

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
