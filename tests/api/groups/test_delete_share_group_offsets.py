from typing import Any

from ottla.controller.image import FeaturesChanged
from ottla.protocol.errors import ErrorCode

from .conftest import TOPIC_ID

KEY = 92


async def ask(api: Any, *names: str, group: str = "g") -> Any:
    topics = tuple(
        api.struct("DeleteShareGroupOffsetsRequestTopic", KEY, 0, topic_name=name) for name in names
    )
    return await api.ask("delete_share_group_offsets", 0, group_id=group, topics=topics)


def rows(answer: Any) -> list[tuple[Any, ...]]:
    return [
        (topic.topic_name, topic.topic_id, topic.error_code, topic.error_message)
        for topic in answer.responses
    ]


async def test_topics_are_forgotten(api: Any) -> None:
    await api.share_beat()
    assert (await ask(api, "t")).error_code is ErrorCode.non_empty_group
    await api.begin_share_states("g", {TOPIC_ID: (0, 1)})
    await api.share_beat(member_epoch=-1)
    api.share_states.refused[1] = ErrorCode.not_coordinator
    answer = await ask(api, "t", "x", "t")
    unknown = ErrorCode.unknown_topic_or_partition
    assert (answer.error_code, answer.error_message) == (ErrorCode.none, None)
    assert rows(answer) == [
        ("t", TOPIC_ID, ErrorCode.not_coordinator, None),
        ("x", None, unknown, None),
    ]
    api.share_states.refused.clear()
    assert rows(await ask(api, "t")) == [("t", TOPIC_ID, ErrorCode.none, None)]
    nothing = "There is no offset information to delete."
    assert rows(await ask(api, "t")) == [("t", None, unknown, nothing)]


async def test_refusals(api: Any) -> None:
    answer = await ask(api, "t")
    assert (answer.error_code, answer.responses) == (ErrorCode.group_id_not_found, ())
    assert (await ask(api, "t", group="")).error_code is ErrorCode.invalid_group_id
    api.image.apply(FeaturesChanged({}, 1))
    assert (await ask(api, "t")).error_code is ErrorCode.unsupported_version
