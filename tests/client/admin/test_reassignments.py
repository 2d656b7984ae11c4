"""Which replicas are asked for, what moves, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster

from ottla.client.admin.reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
    LIST_PARTITION_REASSIGNMENTS,
    Reassignment,
    cancel_reassignments,
    reassign,
    reassignments,
)
from ottla.client.errors import RefusedError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of


def test_ongoing_reassignments_are_listed_by_partition() -> None:
    def listed(address: str, request: Any) -> Any:
        assert request.topics is None
        build = messages_of(LIST_PARTITION_REASSIGNMENTS, 0)
        moving = build.OngoingPartitionReassignment(
            partition_index=2, replicas=(1, 2, 3), adding_replicas=(3,), removing_replicas=(1,)
        )
        topic = build.OngoingTopicReassignment(name="t", partitions=(moving,))
        return build.ListPartitionReassignmentsResponse(error_message=None, topics=(topic,))

    cluster = FakeCluster({LIST_PARTITION_REASSIGNMENTS: [listed]})
    assert reassignments(cluster.client()) == {("t", 2): Reassignment((1, 2, 3), (3,), (1,))}


def altered(
    code: ErrorCode, message: str | None = None, replicas: tuple[int, ...] | None = (3, 2)
) -> FakeCluster:
    def answer(address: str, request: Any) -> Any:
        build = messages_of(ALTER_PARTITION_REASSIGNMENTS, 0)
        (topic,) = request.topics
        (partition,) = topic.partitions
        assert (topic.name, partition.partition_index, partition.replicas) == ("t", 2, replicas)
        refused = build.ReassignablePartitionResponse(
            partition_index=2, error_code=code, error_message=message
        )
        response = build.ReassignableTopicResponse(name="t", partitions=(refused,))
        return build.AlterPartitionReassignmentsResponse(error_message=None, responses=(response,))

    answers: dict[int, list[Callable[..., Any]]] = {ALTER_PARTITION_REASSIGNMENTS: [answer]}
    return FakeCluster(answers)


def test_a_refused_move_names_the_partition_and_the_reason() -> None:
    targets = {"t": {2: [3, 2]}}
    reassign(altered(ErrorCode.none).client(), targets)
    refused = altered(ErrorCode.invalid_replica_assignment, "broker 9 is not there")
    with pytest.raises(RefusedError) as raised:
        reassign(refused.client(), targets)
    assert str(raised.value) == "cannot move t-2: broker 9 is not there."


def test_moves_are_cancelled_and_one_that_has_ended_is_no_error() -> None:
    for code in (ErrorCode.none, ErrorCode.no_reassignment_in_progress):
        cancel_reassignments(altered(code, replicas=None).client(), [("t", 2)])
    refused = altered(ErrorCode.cluster_authorization_failed, replicas=None)
    with pytest.raises(RefusedError, match="cannot cancel the move of t-2"):
        cancel_reassignments(refused.client(), [("t", 2)])
