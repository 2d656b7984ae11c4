import asyncio
from typing import Any

import pytest
from tests.turns import most_calls_at_once

from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ApiError, ErrorCode

KEY = 19


def request(
    cluster: Any, version: int, *topics: dict[str, Any], validate_only: bool = False
) -> Any:
    build = cluster.request(KEY, version)
    return build.CreateTopicsRequest(
        topics=tuple(
            build.CreatableTopic(
                name=topic["name"],
                num_partitions=topic.get("partitions", 1),
                replication_factor=topic.get("factor", 1),
                assignments=tuple(
                    build.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
                    for index, brokers in topic.get("assignments", ())
                ),
                configs=tuple(
                    build.CreatableTopicConfig(name=name, value=value)
                    for name, value in topic.get("configs", ())
                ),
            )
            for topic in topics
        ),
        timeout=1000,
        validate_only=validate_only,
    )


@pytest.mark.parametrize("version", range(2, 8))
async def test_every_version_creates_a_topic(cluster: Any, version: int) -> None:
    wish = {"name": "t", "partitions": 3, "configs": [("retention.ms", "5")]}
    answer = await cluster.ask(request(cluster, version, wish))
    (result,) = answer.topics
    assert (result.name, result.error_code) == ("t", ErrorCode.none)
    topic = cluster.image.topics["t"]
    assert (len(topic.partitions), topic.overrides) == (3, {"retention.ms": "5"})
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        configs = {each.name: (each.value, each.config_source) for each in result.configs}
        assert configs["retention.ms"] == ("5", 1)
        assert configs["max.message.bytes"] == ("1048588", 5)
    if version >= 7:
        assert result.topic_id == topic.topic_id


async def test_explicit_assignments(cluster: Any) -> None:
    wish = {"name": "t", "partitions": -1, "factor": -1, "assignments": [(0, (1,)), (1, (1,))]}
    answer = await cluster.ask(request(cluster, 7, wish))
    assert answer.topics[0].num_partitions == 2


async def test_validate_only_creates_nothing(cluster: Any) -> None:
    wish = {"name": "t", "partitions": -1, "factor": -1}
    answer = await cluster.ask(request(cluster, 7, wish, validate_only=True))
    (result,) = answer.topics
    assert result.error_code is ErrorCode.none
    assert (result.num_partitions, result.topic_id) == (1, None)
    assert cluster.image.topics == {}


async def test_errors_have_a_message_and_do_not_affect_others(cluster: Any) -> None:
    answer = await cluster.ask(
        request(
            cluster,
            7,
            {"name": "good"},
            {"name": "bad", "configs": [("cleanup.policy", "keep")]},
            {"name": "twice"},
            {"name": "twice"},
            {"name": "many", "factor": 3},
        )
    )
    results = {result.name: result for result in answer.topics}
    assert len(answer.topics) == 4
    assert results["good"].error_code is ErrorCode.none
    assert results["bad"].error_code is ErrorCode.invalid_config
    assert "String must be one of: compact, delete" in results["bad"].error_message
    assert results["bad"].num_partitions == -1
    assert results["twice"].error_code is ErrorCode.invalid_request
    assert results["many"].error_code is ErrorCode.invalid_replication_factor
    assert set(cluster.image.topics) == {"good"}


async def test_a_fault_of_the_whole_request_is_told_for_each_topic(cluster: Any) -> None:
    # Another broker has become the controller.
    await cluster.node.membership.session.set("/controller_epoch", b"99")
    answer = await cluster.ask(request(cluster, 7, {"name": "t"}, {"name": "u"}))
    assert [(each.name, each.error_code) for each in answer.topics] == [
        ("t", ErrorCode.not_controller),
        ("u", ErrorCode.not_controller),
    ]


async def test_many_topics_leave_time_for_others(cluster: Any) -> None:
    ran = 0

    async def others() -> None:
        nonlocal ran
        while True:
            ran += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    wishes = [{"name": f"t{number}"} for number in range(250)]
    answer = await cluster.ask(request(cluster, 7, *wishes))
    task.cancel()
    assert {each.error_code for each in answer.topics} == {ErrorCode.none}
    assert [each.name for each in answer.topics] == [wish["name"] for wish in wishes]
    assert len(cluster.image.topics) == 250
    assert ran >= 3


async def test_topics_of_earlier_plans_are_there_if_a_later_one_fails(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, plans = cluster.controller._place, 0

    async def place(decide: Any) -> Any:
        nonlocal plans
        plans += 1
        if plans == 2:
            raise ApiError(ErrorCode.not_controller)
        return await right(decide)

    monkeypatch.setattr(cluster.controller, "_place", place)
    wishes = [{"name": f"t{number}"} for number in range(250)]
    answer = await cluster.ask(request(cluster, 7, *wishes))
    codes = [each.error_code for each in answer.topics]
    assert codes == [ErrorCode.none] * 100 + [ErrorCode.not_controller] * 150
    assert len(cluster.image.topics) == 100


async def test_a_topic_of_many_partitions_does_not_hold_the_loop(cluster: Any) -> None:
    """The largest one: the controller decides and writes it in one plan."""
    await cluster.others_are(2, 3, 4, 5, 6, 7)
    created = cluster.controller.create_topics([NewTopic("u", 10_000, 3)])
    (result,), most_calls = await most_calls_at_once(created)
    assert not result.outcome.failed
    assert len(cluster.image.topics["u"].partitions) == 10_000
    assert most_calls < 100_000
