import asyncio
from typing import Any
from uuid import UUID

import pytest

from ottla.api.consumer_group_heartbeat import MAX_OWNED_TOPICS
from ottla.controller.image import FeaturesChanged
from ottla.protocol.errors import ErrorCode

from .conftest import TOPIC_ID


@pytest.mark.parametrize("version", range(2))
async def test_a_member_joins_and_leaves(api: Any, version: int) -> None:
    answer = await api.beat(version)
    assert (answer.error_code, answer.error_message) == (ErrorCode.none, None)
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval) == ("m", 2, 5_000)
    (topic,) = answer.assignment.topic_partitions
    assert (topic.topic_id, topic.partitions) == (TOPIC_ID, (0, 1))
    quiet = {"rebalance_timeout": -1, "subscribed_topic_names": None, "topic_partitions": None}
    alive = await api.beat(version, member_epoch=2, **quiet)
    assert (alive.error_code, alive.member_epoch, alive.assignment) == (ErrorCode.none, 2, None)
    left = await api.beat(version, member_epoch=-1, **quiet)
    assert (left.error_code, left.member_epoch) == (ErrorCode.none, -1)
    assert api.shard.consumer.groups["g"].members == {}


async def test_the_coordinator_makes_the_id_of_an_older_client(api: Any) -> None:
    answer = await api.beat(0, member_id="")
    assert len(answer.member_id) == 22
    assert list(api.shard.consumer.groups["g"].members) == [answer.member_id]


async def test_what_a_member_owns(api: Any) -> None:
    await api.beat()
    await api.beat(member_id="n")
    owned = api.struct("TopicPartitions", 68, 1, topic_id=TOPIC_ID, partitions=(0, 1))
    answer = await api.beat(member_epoch=2, topic_partitions=(owned,))
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.none, 2)
    fenced = await api.beat(member_epoch=9, topic_partitions=(owned,))
    assert fenced.error_code is ErrorCode.fenced_member_epoch
    assert "greater member epoch (9)" in fenced.error_message


async def test_a_topic_that_a_member_names_again(api: Any) -> None:
    """A member that has given up a partition owns the union of what it names."""
    await api.beat()
    group = api.shard.consumer.groups["g"]
    group.target_timestamp_ms = 0  # the next target may be made
    await api.beat(member_id="n")
    await api.beat(member_epoch=2, topic_partitions=None)
    (kept,) = group.members["m"].assigned[TOPIC_ID]

    async def beat(*partitions: int) -> int:
        owned = tuple(
            api.struct("TopicPartitions", 68, 1, topic_id=TOPIC_ID, partitions=(partition,))
            for partition in partitions
        )
        answer = await api.beat(member_epoch=2, topic_partitions=owned)
        assert answer.error_code is ErrorCode.none
        return int(answer.member_epoch)

    assert await beat(1 - kept, kept, kept) == 2, "it still has to give up the other"
    assert await beat(kept, kept) == 3


async def test_what_a_request_must_say(api: Any) -> None:
    for fields, message in (
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"subscribed_topic_names": None}, "Either SubscribedTopicNames or"),
        ({"subscribed_topic_names": tuple(map(str, range(10_001)))}, "has 10,001 names"),
    ):
        answer = await api.beat(**fields)
        assert answer.error_code is ErrorCode.invalid_request
        assert message in answer.error_message


async def test_a_cluster_without_the_protocol(api: Any) -> None:
    api.image.apply(FeaturesChanged({}, 1))
    answer = await api.beat()
    assert answer.error_code is ErrorCode.unsupported_version
    assert "group.version" in answer.error_message
    described = await api.ask("consumer_group_describe", 1, group_ids=("g",))
    assert described.groups[0].error_code is ErrorCode.unsupported_version


async def test_many_topics_are_subscribed_to_beside_the_loop(api: Any) -> None:
    """The group is so large that a copy of it decides."""
    names = tuple(f"topic-{number}" for number in range(6_000))
    answer = await api.beat(subscribed_topic_names=names)
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.none, 2)
    assert len(api.shard.consumer.groups["g"].subscribers) == 6_000
    left = await api.beat(member_epoch=-1)
    assert left.error_code is ErrorCode.none


async def test_a_subscription_by_regular_expression(api: Any) -> None:
    joined = await api.beat(subscribed_topic_names=None, subscribed_topic_regex="t|u.*")
    assert joined.error_code is ErrorCode.none
    assert joined.assignment.topic_partitions == ()
    while not api.shard.consumer.groups["g"].regexes:
        await asyncio.sleep(0.01)
    told = await api.beat(
        member_epoch=joined.member_epoch, subscribed_topic_names=None, topic_partitions=None,
        rebalance_timeout=-1,
    )  # fmt: skip
    (topic,) = told.assignment.topic_partitions
    assert (topic.topic_id, topic.partitions) == (TOPIC_ID, (0, 1))


async def test_an_invalid_regular_expression(api: Any) -> None:
    answer = await api.beat(subscribed_topic_names=None, subscribed_topic_regex="(")
    assert answer.error_code is ErrorCode.invalid_regular_expression
    assert "'(' is not a valid regular expression: missing )" in answer.error_message


async def test_a_very_large_group_does_not_hold_the_loop(api: Any) -> None:
    """What takes long is decided in a thread; what is left for the loop is done in slices."""
    api.image.apply(api.topic_created("large", 50_000))
    most = []
    for member in ("a", "b"):
        answer = await api.beat(member_id=member, subscribed_topic_names=("large",))
        assert answer.error_code is ErrorCode.none
        most.append(api.most_calls)
    for _ in range(3):
        topics = answer.assignment.topic_partitions if answer.assignment is not None else ()
        owned = tuple(
            api.struct("TopicPartitions", 68, 1, topic_id=each.topic_id, partitions=each.partitions)
            for each in topics
        )
        answer = await api.beat(
            member_id="b", member_epoch=answer.member_epoch, subscribed_topic_names=("large",),
            topic_partitions=owned,
        )  # fmt: skip
        most.append(api.most_calls)
    assert max(most) < 150_000, most


async def test_a_member_that_owns_nothing_and_reports_much(api: Any) -> None:
    """It counts as fenced where it is in another epoch, and nobody waits for it."""
    await api.beat(subscribed_topic_names=("none",))

    def owns(topics: int, partitions: int) -> Any:
        numbers = tuple(range(partitions))
        return tuple(
            api.struct(
                "TopicPartitions", 68, 1, topic_id=UUID(int=1_000 + topic), partitions=numbers
            )
            for topic in range(topics)
        )

    async def beat(epoch: int, topics: int, partitions: int) -> Any:
        answer = await api.beat(
            member_epoch=epoch, subscribed_topic_names=("none",),
            topic_partitions=owns(topics, partitions),
        )  # fmt: skip
        assert api.most_calls < 150_000
        return answer

    group = api.shard.consumer.groups["g"]
    for topics, partitions in ((MAX_OWNED_TOPICS, 1), (1, 900_000), (1_000, 100)):
        kept = await beat(2, topics, partitions)
        assert (kept.error_code, kept.member_epoch) == (ErrorCode.none, 2)
        former = await beat(1, topics, partitions)
        assert former.error_code is ErrorCode.fenced_member_epoch
        assert (len(group.members), len(group.owner_epochs)) == (1, 0)
    refused = await beat(2, MAX_OWNED_TOPICS + 1, 0)
    assert refused.error_code is ErrorCode.invalid_request
    assert "partitions of 100,000 topics at most" in refused.error_message


async def test_an_expression_that_matches_thousands_does_not_hold_the_loop(api: Any) -> None:
    for number in range(10_000):
        api.image.apply(api.topic_created(f"many-{number}", 1, 100 + number))
    joined = await api.beat(subscribed_topic_names=None, subscribed_topic_regex="many-.*")
    most = [api.most_calls]
    group = api.shard.consumer.groups["g"]
    while not group.regexes:
        await asyncio.sleep(0.01)
    told = await api.beat(
        member_epoch=joined.member_epoch, subscribed_topic_names=None, topic_partitions=None,
        rebalance_timeout=-1,
    )  # fmt: skip
    most.append(api.most_calls)
    assert len(told.assignment.topic_partitions) == 10_000
    assert max(most) < 150_000, most
