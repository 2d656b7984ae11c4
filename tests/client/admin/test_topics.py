"""Topics are created, extended and deleted by the controller."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.fake_cluster import Answer, FakeCluster

from ottla.client.admin.topics import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    NewTopic,
    add_partitions,
    create_topics,
    delete_topic,
    known_topics,
)
from ottla.client.errors import ClientError, RefusedError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of


def created(cluster: FakeCluster, code: ErrorCode = ErrorCode.none, leader: int = 1) -> Answer:
    """The answer to CreateTopics, once the topics are there."""

    def answer(address: str, request: Any) -> Any:
        build = messages_of(CREATE_TOPICS, request.__version__)
        for topic in request.topics:
            count = len(topic.assignments) or max(1, topic.num_partitions)
            if code is ErrorCode.none:
                cluster.leaders |= {(topic.name, index): leader for index in range(count)}
        return build.CreateTopicsResponse(
            topics=tuple(
                build.CreatableTopicResult(name=each.name, error_code=code, error_message=None)
                for each in request.topics
            )
        )

    return answer


def test_a_topic_has_numbers_or_the_brokers_of_each_partition() -> None:
    cluster = FakeCluster()
    cluster.answers[CREATE_TOPICS] = [created(cluster)]
    numbers = NewTopic("a", 2, 1, settings={"retention.ms": "5"})
    create_topics(cluster.client(), [numbers, NewTopic("b", assignment=[[1, 2], [2, 1]])])
    (request,) = cluster.requests(CREATE_TOPICS)
    one, other = request.topics
    assert (one.num_partitions, one.replication_factor, one.assignments) == (2, 1, ())
    assert [(each.name, each.value) for each in one.configs] == [("retention.ms", "5")]
    assert (other.num_partitions, other.replication_factor) == (-1, -1)
    assert [each.broker_ids for each in other.assignments] == [(1, 2), (2, 1)]
    assert sorted(known_topics(cluster.client(), ["a", "b", "c"])) == ["a", "b"]


def test_the_first_refusal_is_raised() -> None:
    cluster = FakeCluster()
    cluster.answers[CREATE_TOPICS] = [created(cluster, ErrorCode.topic_already_exists)]
    with pytest.raises(RefusedError, match="cannot create topic 'a': topic already exists"):
        create_topics(cluster.client(), [NewTopic("a")])


def test_the_controller_is_asked_if_another_broker_does_not_forward() -> None:
    cluster = FakeCluster()
    other = created(cluster, ErrorCode.not_controller)
    cluster.answers[CREATE_TOPICS] = [other, created(cluster)]
    cluster.controller = 2
    create_topics(cluster.client(), [NewTopic("a")])
    assert cluster.asked_of(CREATE_TOPICS) == ["b1:9092", "b2:9092"]


def test_a_topic_without_leaders_is_waited_for() -> None:
    cluster = FakeCluster()
    cluster.answers[CREATE_TOPICS] = [created(cluster, leader=-1)]
    with pytest.raises(ClientError, match="created a, but not every partition has a leader"):
        create_topics(cluster.client(answer_s=1.0), [NewTopic("a")])
    assert cluster.slept_s >= 1


def test_partitions_are_added() -> None:
    cluster = FakeCluster()

    def answer(address: str, request: Any) -> Any:
        build = messages_of(CREATE_PARTITIONS, request.__version__)
        (topic,) = request.topics
        cluster.leaders = {(topic.name, index): 1 for index in range(topic.count)}
        result = build.CreatePartitionsTopicResult(name=topic.name, error_message=None)
        return build.CreatePartitionsResponse(results=(result,))

    cluster.answers[CREATE_PARTITIONS] = [answer]
    add_partitions(cluster.client(), "t", 5)
    assert len(cluster.client().metadata(["t"]).topics["t"].partitions) == 5


def test_a_topic_that_cannot_be_deleted() -> None:
    def answer(address: str, request: Any) -> Any:
        build = messages_of(DELETE_TOPICS, request.__version__)
        (name,) = request.topic_names
        result = build.DeletableTopicResult(
            name=name, error_code=ErrorCode.topic_deletion_disabled, error_message=None
        )
        return build.DeleteTopicsResponse(responses=(result,))

    client = FakeCluster({DELETE_TOPICS: [answer]}).client()
    with pytest.raises(RefusedError, match="cannot delete topic 't': topic deletion disabled"):
        delete_topic(client, "t")
