from typing import Any

import pytest

from ottla.controller.image import FeaturesChanged
from ottla.protocol.errors import ErrorCode
from ottla.share.shard import Summary

from .conftest import TOPIC_ID

KEY = 90


async def ask(api: Any, version: int, *topics: tuple[str, tuple[int, ...]], **fields: Any) -> Any:
    asked = tuple(
        api.struct(
            "DescribeShareGroupOffsetsRequestTopic",
            KEY,
            version,
            topic_name=name,
            partitions=partitions,
        )
        for name, partitions in topics
    )
    group = api.struct(
        "DescribeShareGroupOffsetsRequestGroup",
        KEY,
        version,
        **({"group_id": "g", "topics": asked} | fields),
    )
    answer = await api.ask("describe_share_group_offsets", version, groups=(group,))
    return answer.groups[0]


def rows(group: Any) -> list[tuple[Any, ...]]:
    return [
        (topic.topic_name, each.partition_index, each.error_code, each.start_offset)
        for topic in group.topics
        for each in topic.partitions
    ]


@pytest.mark.parametrize("version", range(2))
async def test_named_partitions(api: Any, version: int) -> None:
    api.share_states.summaries[1] = Summary()
    api.share_states.refused[7] = ErrorCode.unknown_topic_or_partition
    group = await ask(api, version, ("t", (0, 1, 7)), ("x", (3,)))
    none = ErrorCode.none
    assert (group.group_id, group.error_code) == ("g", none)
    assert rows(group) == [
        ("t", 0, none, 30), ("t", 1, none, -1), ("t", 7, none, -1), ("x", 3, none, -1),
    ]  # fmt: skip
    assert [topic.topic_id for topic in group.topics] == [TOPIC_ID, None]
    assert group.topics[0].partitions[0].leader_epoch == 2
    if version >= 1:
        # 100 - 30, of which 4 are done.
        assert [each.lag for each in group.topics[0].partitions] == [66, -1, -1]


async def test_partitions_that_there_are_not_are_asked_for_nowhere(api: Any) -> None:
    api.share_states.refused = dict.fromkeys((-1, 7), ErrorCode.network_exception)
    group = await ask(api, 1, ("t", (-1, 7, 0, 0)), ("t", (7,)))
    none = ErrorCode.none
    assert rows(group) == [("t", -1, none, -1), ("t", 7, none, -1), ("t", 0, none, 30)]


async def test_what_is_not_known_is_an_error(api: Any) -> None:
    api.share_states.refused[0] = ErrorCode.coordinator_not_available
    group = await ask(api, 1, ("t", (0, 1)))
    assert rows(group) == [
        ("t", 0, ErrorCode.coordinator_not_available, -1),
        ("t", 1, ErrorCode.not_leader_or_follower, -1),
    ]


async def test_all_partitions_with_state(api: Any) -> None:
    assert (await ask(api, 1, topics=None)).topics == ()
    await api.share_beat()
    await api.begin_share_states("g", {TOPIC_ID: (0, 1)})
    assert rows(await ask(api, 0, topics=None)) == [
        ("t", 0, ErrorCode.none, 30), ("t", 1, ErrorCode.none, 30),
    ]  # fmt: skip
    assert rows(await ask(api, 0)) == []


async def test_a_cluster_without_share_groups(api: Any) -> None:
    api.image.apply(FeaturesChanged({}, 1))
    group = await ask(api, 1, ("t", (0,)))
    assert (group.error_code, group.topics) == (ErrorCode.unsupported_version, ())


async def test_a_group_is_answered_once(api: Any) -> None:
    await api.share_beat()
    await api.begin_share_states("g", {TOPIC_ID: (0, 1)})
    group = api.struct("DescribeShareGroupOffsetsRequestGroup", KEY, 1, group_id="g", topics=None)
    answer = await api.ask("describe_share_group_offsets", 1, groups=(group, group))
    first, again = answer.groups
    assert [each[1] for each in rows(first)] == [0, 1]
    assert (again.error_code, again.topics) == (ErrorCode.invalid_request, ())
