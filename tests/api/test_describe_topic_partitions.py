from typing import Any

import pytest
from tests.turns import most_calls_at_once

from ottla.api.describe_topic_partitions import handle
from ottla.api.metadata import TOPIC_OPERATIONS
from ottla.controller.topics import NewTopic
from ottla.network.client_session import ClientSession
from ottla.network.request_context import RequestContext
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of

KEY = 75


def request(
    cluster: Any, names: list[str], limit: int = 2000, cursor: tuple[str, int] | None = None
) -> Any:
    build = cluster.request(KEY, 0)
    return build.DescribeTopicPartitionsRequest(
        topics=tuple(build.TopicRequest(name=name) for name in names),
        response_partition_limit=limit,
        cursor=(
            None
            if cursor is None
            else build.Cursor(topic_name=cursor[0], partition_index=cursor[1])
        ),
    )


async def test_topics_are_sorted_with_their_partitions(cluster: Any) -> None:
    await cluster.create(NewTopic("u", 1, 1), NewTopic("t", 2, 1))
    answer = await cluster.ask(request(cluster, []))
    assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [("t", 2), ("u", 1)]
    topic = answer.topics[0]
    assert topic.topic_id == cluster.image.topics["t"].topic_id
    assert topic.topic_authorized_operations == TOPIC_OPERATIONS
    partition = topic.partitions[1]
    assert (partition.partition_index, partition.leader_id, partition.leader_epoch) == (1, 1, 0)
    assert (partition.replica_nodes, partition.isr_nodes) == ((1,), (1,))
    assert (partition.eligible_leader_replicas, partition.offline_replicas) == ((), ())
    assert answer.next_cursor is None


async def test_unknown_topics_are_errors(cluster: Any) -> None:
    answer = await cluster.ask(request(cluster, ["none", "a b"]))
    assert {topic.name: topic.error_code for topic in answer.topics} == {
        "a b": ErrorCode.invalid_topic_exception,
        "none": ErrorCode.unknown_topic_or_partition,
    }


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 100, -5])
@pytest.mark.parametrize("names", [[], ["a", "b", "c"]])
async def test_pages_add_up_to_the_whole_response(
    cluster: Any, limit: int, names: list[str]
) -> None:
    await cluster.create(NewTopic("a", 3, 1), NewTopic("b", 1, 1), NewTopic("c", 4, 1))
    seen: list[tuple[str, int]] = []
    cursor: tuple[str, int] | None = None
    for _ in range(10):
        answer = await cluster.ask(request(cluster, names, limit, cursor))
        page = [
            (topic.name, partition.partition_index)
            for topic in answer.topics
            for partition in topic.partitions
        ]
        assert len(page) <= max(limit, 1)
        seen += page
        if answer.next_cursor is None:
            break
        cursor = (answer.next_cursor.topic_name, answer.next_cursor.partition_index)
    assert seen == [
        *(("a", index) for index in range(3)),
        ("b", 0),
        *(("c", index) for index in range(4)),
    ]


async def test_the_brokers_limit_applies(start_cluster: Any) -> None:
    cluster = await start_cluster(max_request_partition_size_limit="2")
    await cluster.create(NewTopic("t", 5, 1))
    answer = await cluster.ask(request(cluster, [], 2000))
    assert len(answer.topics[0].partitions) == 2
    assert (answer.next_cursor.topic_name, answer.next_cursor.partition_index) == ("t", 2)


@pytest.mark.parametrize("cursor", [("t", -1), ("other", 0)])
async def test_a_bad_cursor_is_refused(cluster: Any, cursor: tuple[str, int]) -> None:
    await cluster.create(NewTopic("t", 5, 1))
    answer = await cluster.ask(request(cluster, ["t"], cursor=cursor))
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.invalid_request]


async def test_a_cursor_past_the_last_partition_continues_with_the_next_topic(
    cluster: Any,
) -> None:
    await cluster.create(NewTopic("t", 2, 1), NewTopic("u", 1, 1))
    answer = await cluster.ask(request(cluster, [], cursor=("t", 7)))
    assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [("t", 0), ("u", 1)]


async def test_an_unreachable_leader_is_not_named(node_call: Any) -> None:
    """Without an error: only the leader is -1 (KRaftMetadataCache.describeTopicResponse)."""
    own = node_call.node.config.id
    await node_call.create("u", 2)
    await node_call.appear(7, listener="REPLICATION")
    await node_call.place("u", (7, own))
    await node_call.place("u", (8, own), leader=-1, isr=(8,), index=1)
    asked = request(node_call, ["u"])
    lives, nobody = (await node_call.ask(asked)).topics[0].partitions
    assert (lives.error_code, lives.leader_id) == (ErrorCode.none, -1)
    assert (lives.replica_nodes, lives.isr_nodes) == ((7, own), (7, own))
    assert lives.offline_replicas == (7,)
    assert (nobody.error_code, nobody.leader_id) == (ErrorCode.none, -1)
    assert (nobody.isr_nodes, nobody.offline_replicas) == ((8,), (8,))
    (there, _) = (await node_call.ask(asked, "REPLICATION")).topics[0].partitions
    assert (there.error_code, there.leader_id) == (ErrorCode.none, 7)
    assert there.offline_replicas == ()


async def test_names_without_a_topic_do_not_hold_the_loop(node_call: Any) -> None:
    build = node_call.request(KEY, 0)
    names = [f"n{number * 7919 % 60_000}" for number in range(60_000)]
    for cursor in (None, build.Cursor(topic_name="n1", partition_index=-1)):
        asked = build.DescribeTopicPartitionsRequest(
            topics=tuple(build.TopicRequest(name=name) for name in names),
            response_partition_limit=2000,
            cursor=cursor,
        )
        context = RequestContext(
            broker=node_call.node,
            session=ClientSession(1, "127.0.0.1", "PLAINTEXT", "127.0.0.1", 9092),
            version=0,
            client_id="tests",
            messages=messages_of(KEY, 0),
        )
        answer, most_calls = await most_calls_at_once(handle(asked, context))
        assert [topic.name for topic in answer.topics] == sorted(names)
        assert most_calls < 20_000
