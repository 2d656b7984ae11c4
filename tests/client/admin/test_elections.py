"""Which leaders are asked for, and which elections failed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster

from ottla.client.admin.elections import ELECT_LEADERS, elect_leaders
from ottla.client.errors import RefusedError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of


def cluster(code: ErrorCode, of_partition: ErrorCode = ErrorCode.none) -> FakeCluster:
    def answer(address: str, request: Any) -> Any:
        assert request.election_type == 1
        (topic,) = request.topic_partitions
        build = messages_of(ELECT_LEADERS, request.__version__)
        results = tuple(
            build.PartitionResult(partition_id=index, error_code=each, error_message=None)
            for index, each in zip(
                topic.partitions, (of_partition, ErrorCode.election_not_needed), strict=True
            )
        )
        found = build.ReplicaElectionResult(topic=topic.topic, partition_result=results)
        return build.ElectLeadersResponse(error_code=code, replica_election_results=(found,))

    return FakeCluster({ELECT_LEADERS: [answer]})


def elected(brokers: FakeCluster) -> Any:
    return elect_leaders(brokers.client(), [("t", 0), ("t", 1)], unclean=True)


def test_an_election_that_was_not_needed_has_not_failed() -> None:
    assert elected(cluster(ErrorCode.none)) == {}


def test_a_failed_election_has_its_reason() -> None:
    refused = cluster(ErrorCode.none, ErrorCode.eligible_leaders_not_available)
    ((partition, refusal),) = elected(refused).items()
    assert (partition, refusal.code) == (("t", 0), ErrorCode.eligible_leaders_not_available)
    assert refusal.reason == "eligible leaders not available"


def test_a_cluster_that_refuses_all_of_it() -> None:
    with pytest.raises(RefusedError, match="cannot elect leaders: cluster authorization failed"):
        elected(cluster(ErrorCode.cluster_authorization_failed))
