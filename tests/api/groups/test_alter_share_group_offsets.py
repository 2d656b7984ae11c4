from typing import Any

from ottla.controller.image import FeaturesChanged
from ottla.protocol.errors import ErrorCode

from .conftest import TOPIC_ID

KEY = 91


async def ask(api: Any, *topics: tuple[str, dict[int, int]], group: str = "g") -> Any:
    asked = tuple(
        api.struct(
            "AlterShareGroupOffsetsRequestTopic",
            KEY,
            0,
            topic_name=name,
            partitions=tuple(
                api.struct(
                    "AlterShareGroupOffsetsRequestPartition",
                    KEY,
                    0,
                    partition_index=index,
                    start_offset=offset,
                )
                for index, offset in offsets.items()
            ),
        )
        for name, offsets in topics
    )
    return await api.ask("alter_share_group_offsets", 0, group_id=group, topics=asked)


async def test_a_new_group_gets_offsets(api: Any) -> None:
    api.share_states.refused[1] = ErrorCode.not_coordinator
    answer = await ask(api, ("t", {0: 5, 1: 6, 9: 1}), ("x", {0: 1}), ("t", {0: 7, 2: -2}))
    unknown = ErrorCode.unknown_topic_or_partition
    assert (answer.error_code, answer.error_message) == (ErrorCode.none, None)
    assert [(topic.topic_name, topic.topic_id) for topic in answer.responses] == [
        ("t", TOPIC_ID), ("x", None),
    ]  # fmt: skip
    codes = {
        (topic.topic_name, each.partition_index): each.error_code
        for topic in answer.responses
        for each in topic.partitions
    }
    assert codes == {
        ("t", 0): ErrorCode.none,
        ("t", 1): ErrorCode.not_coordinator,
        ("t", 2): ErrorCode.invalid_request,
        ("t", 9): unknown,
        ("x", 0): unknown,
    }
    assert [(key.partition, offset) for key, _, offset in api.share_states.begun] == [
        (0, 7), (1, 6),
    ]  # fmt: skip
    states = api.shard.share.groups["g"].states
    assert states.initialized[TOPIC_ID].partitions == {0}


async def test_refusals(api: Any) -> None:
    await api.share_beat()
    answer = await ask(api, ("t", {0: 5}))
    assert (answer.error_code, answer.responses) == (ErrorCode.non_empty_group, ())
    assert (await ask(api, group="")).error_code is ErrorCode.invalid_group_id
    await api.stable(group_id="classic")
    answer = await ask(api, ("t", {0: 5}), group="classic")
    assert answer.error_code is ErrorCode.group_id_not_found
    assert answer.error_message == "Group classic is not a share group."
    api.image.apply(FeaturesChanged({}, 1))
    assert (await ask(api, ("t", {0: 5}))).error_code is ErrorCode.unsupported_version
