from typing import Any
from uuid import UUID

import pytest

from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ErrorCode

KEY = 20


@pytest.mark.parametrize("version", range(1, 7))
async def test_every_version_deletes_by_name(cluster: Any, version: int) -> None:
    await cluster.create(NewTopic("t", 2, 1), NewTopic("u", 1, 1))
    build = cluster.request(KEY, version)
    named: dict[str, Any] = {"topic_names": ("t", "none")}
    if version >= 6:
        named = {"topics": tuple(build.DeleteTopicState(name=name) for name in ("t", "none"))}
    answer = await cluster.ask(build.DeleteTopicsRequest(**named, timeout=1000))
    results = {each.name: each.error_code for each in answer.responses}
    assert results == {"t": ErrorCode.none, "none": ErrorCode.unknown_topic_or_partition}
    assert set(cluster.image.topics) == {"u"}


async def test_deletes_by_id(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 1, 1))
    build = cluster.request(KEY, 6)
    topic_id = cluster.image.topics["t"].topic_id
    answer = await cluster.ask(
        build.DeleteTopicsRequest(
            topics=tuple(
                build.DeleteTopicState(name=None, topic_id=each)
                for each in (topic_id, UUID(int=77), None)
            ),
            timeout=1_000,
        )
    )
    results = {each.topic_id: (each.name, each.error_code) for each in answer.responses}
    assert results == {
        topic_id: ("t", ErrorCode.none),
        UUID(int=77): (None, ErrorCode.unknown_topic_id),
        None: (None, ErrorCode.invalid_request),
    }


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.invalid_request), (3, ErrorCode.topic_deletion_disabled)],
)
async def test_deletion_can_be_disabled(start_cluster: Any, version: int, code: ErrorCode) -> None:
    cluster = await start_cluster(delete_topic_enable="false")
    await cluster.create(NewTopic("t", 1, 1))
    build = cluster.request(KEY, version)
    answer = await cluster.ask(build.DeleteTopicsRequest(topic_names=("t", "t"), timeout=1_000))
    assert [(each.name, each.error_code) for each in answer.responses] == [("t", code)]
    assert set(cluster.image.topics) == {"t"}
