from collections.abc import Callable
from uuid import UUID

import pytest

from ottla.config.broker import BrokerConfig
from ottla.controller import layout
from ottla.controller.deletion import TopicToDelete, delete_topics
from ottla.controller.image import ClusterImage, TopicDeleted
from ottla.controller.plan import decided
from ottla.controller.topics import NewTopic
from ottla.coordination.tree import Create, Delete
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.kafka_uuid import uuid_text


@pytest.fixture
def topics(add_topic: Callable[[NewTopic], None]) -> None:
    add_topic(NewTopic("t", 2, 1))
    add_topic(NewTopic("u", 1, 1))


@pytest.mark.usefixtures("topics")
def test_by_name_and_by_id(image: ClusterImage, config: BrokerConfig) -> None:
    topic_id = image.topics["u"].topic_id
    requested = [TopicToDelete(name="t"), TopicToDelete(topic_id=topic_id)]
    plan = decided(delete_topics(requested, image, config))
    assert [(result.name, result.outcome.code) for result in plan.reply] == [
        ("t", ErrorCode.none),
        ("u", ErrorCode.none),
    ]
    marks = [layout.deleted_topic_path(name) for name in ("t", "u")]
    notes = [
        Create(f"/ottla/deletions/{uuid_text(image.topics[name].topic_id)}", data)
        for name, data in (
            ("t", b'{"version":1,"topic":"t"}'),
            ("u", b'{"version":1,"topic":"u"}'),
        )
    ]
    assert [write for write in plan.writes if not isinstance(write, Delete)] == [
        Create(marks[0]), notes[0], Create(marks[1]), notes[1],
    ]  # fmt: skip
    assert plan.writes[0] == Create(marks[0])
    assert plan.writes[-1] == Delete(marks[1])
    paths = [write.path for write in plan.writes]
    assert paths.index("/brokers/topics/t/partitions/1/state") < paths.index("/brokers/topics/t")
    assert "/config/topics/t" in paths
    assert all(isinstance(delta, TopicDeleted) for delta in plan.deltas)
    for delta in plan.deltas:
        image.apply(delta)
    assert image.topics == {}
    assert image.topics_by_id == {}


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize(
    ("requested", "code", "message"),
    [
        ([TopicToDelete(name="none")], ErrorCode.unknown_topic_or_partition, "does not host"),
        ([TopicToDelete(topic_id=UUID(int=99))], ErrorCode.unknown_topic_id, "topic ID"),
        ([TopicToDelete()], ErrorCode.invalid_request, "Neither topic name nor id"),
        ([TopicToDelete(topic_id=UUID(int=0))], ErrorCode.invalid_request, "Neither topic name"),
        (
            [TopicToDelete("t", UUID(int=1))],
            ErrorCode.invalid_request,
            "may not specify both topic name and topic id",
        ),
        ([TopicToDelete("t")] * 2, ErrorCode.invalid_request, "Duplicate topic name."),
        (
            [TopicToDelete(topic_id=UUID(int=1))] * 2,
            ErrorCode.invalid_request,
            "Duplicate topic id.",
        ),
        (
            [TopicToDelete("t"), TopicToDelete(topic_id=UUID(int=1))],
            ErrorCode.invalid_request,
            "maps to an ID that was already supplied",
        ),
    ],
)
def test_refusals_have_kafkas_messages(
    image: ClusterImage,
    config: BrokerConfig,
    requested: list[TopicToDelete],
    code: ErrorCode,
    message: str,
) -> None:
    plan = decided(delete_topics(requested, image, config))
    assert {result.outcome.code for result in plan.reply} == {code}
    assert message in (plan.reply[0].outcome.message or "")
    assert plan.writes == ()


@pytest.mark.usefixtures("topics")
def test_deletion_can_be_disabled(image: ClusterImage) -> None:
    config = BrokerConfig({"delete.topic.enable": "false"})
    with pytest.raises(ApiError) as caught:
        decided(delete_topics([TopicToDelete("t")], image, config))
    assert caught.value.code is ErrorCode.topic_deletion_disabled


@pytest.mark.usefixtures("topics")
def test_a_topic_named_both_ways_is_answered_once(
    image: ClusterImage, config: BrokerConfig
) -> None:
    topic_id = image.topics["t"].topic_id
    for requested in ([TopicToDelete("t"), TopicToDelete(topic_id=topic_id)],) * 2:
        plan = decided(delete_topics(requested, image, config))
        (result,) = plan.reply
        assert (result.name, result.topic_id) == ("t", topic_id)
        assert result.outcome.code is ErrorCode.invalid_request
        assert not plan.writes
        requested.reverse()
