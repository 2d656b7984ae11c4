from typing import Any

import pytest

from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ErrorCode

KEY = 43


@pytest.mark.parametrize("version", range(3))
async def test_every_version_says_that_no_election_is_needed(cluster: Any, version: int) -> None:
    await cluster.create(NewTopic("t", 2, 1))
    build = cluster.request(KEY, version)
    topics = (
        build.TopicPartitions(topic="t", partitions=(0, 9)),
        build.TopicPartitions(topic="t", partitions=(1,)),
        build.TopicPartitions(topic="none", partitions=(0,)),
    )
    answer = await cluster.ask(build.ElectLeadersRequest(topic_partitions=topics))
    results = {
        (topic.topic, each.partition_id): each.error_code
        for topic in answer.replica_election_results
        for each in topic.partition_result
    }
    assert results == {
        ("t", 0): ErrorCode.election_not_needed,
        ("t", 1): ErrorCode.election_not_needed,
        ("t", 9): ErrorCode.unknown_topic_or_partition,
        ("none", 0): ErrorCode.unknown_topic_or_partition,
    }


@pytest.mark.parametrize("election_type", [0, 1])
async def test_all_partitions_leave_out_those_that_need_none(
    cluster: Any, election_type: int
) -> None:
    await cluster.create(NewTopic("t", 2, 1))
    build = cluster.request(KEY, 2)
    answer = await cluster.ask(
        build.ElectLeadersRequest(election_type=election_type, topic_partitions=None)
    )
    assert answer.error_code is ErrorCode.none
    assert [each.partition_result for each in answer.replica_election_results] == [()]


async def test_an_unknown_kind_of_election_is_refused(cluster: Any) -> None:
    build = cluster.request(KEY, 2)
    answer = await cluster.ask(build.ElectLeadersRequest(election_type=7, topic_partitions=None))
    assert answer.error_code is ErrorCode.invalid_request
