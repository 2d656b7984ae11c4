from typing import Any

import pytest

from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ErrorCode

KEY = 37


@pytest.mark.parametrize("version", range(4))
async def test_every_version_adds_partitions(cluster: Any, version: int) -> None:
    await cluster.create(NewTopic("t", 1, 1), NewTopic("u", 2, 1))
    build = cluster.request(KEY, version)
    topics = (
        build.CreatePartitionsTopic(name="t", count=3, assignments=None),
        build.CreatePartitionsTopic(name="u", count=1, assignments=None),
        build.CreatePartitionsTopic(
            name="none", count=2, assignments=(build.CreatePartitionsAssignment(broker_ids=(1,)),)
        ),
    )
    answer = await cluster.ask(build.CreatePartitionsRequest(topics=topics, timeout=1000))
    assert {each.name: each.error_code for each in answer.results} == {
        "t": ErrorCode.none,
        "u": ErrorCode.invalid_partitions,
        "none": ErrorCode.unknown_topic_or_partition,
    }
    assert len(cluster.image.topics["t"].partitions) == 3


async def test_validate_only_adds_nothing(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 1, 1))
    build = cluster.request(KEY, 3)
    assignment = build.CreatePartitionsAssignment(broker_ids=(1,))
    topic = build.CreatePartitionsTopic(name="t", count=2, assignments=(assignment,))
    answer = await cluster.ask(
        build.CreatePartitionsRequest(topics=(topic,), timeout=1000, validate_only=True)
    )
    assert answer.results[0].error_code is ErrorCode.none
    assert len(cluster.image.topics["t"].partitions) == 1


async def test_a_fault_of_the_whole_request_is_told_for_each_topic(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 1, 1), NewTopic("u", 1, 1))
    # Another broker has become the controller.
    await cluster.node.membership.session.set("/controller_epoch", b"99")
    build = cluster.request(KEY, 3)
    topics = tuple(
        build.CreatePartitionsTopic(name=name, count=2, assignments=None) for name in ("t", "u")
    )
    answer = await cluster.ask(build.CreatePartitionsRequest(topics=topics, timeout=1000))
    assert [(each.name, each.error_code) for each in answer.results] == [
        ("t", ErrorCode.not_controller),
        ("u", ErrorCode.not_controller),
    ]
