"""Groups as their coordinators describe them, and the offsets that those delete."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from tests.client.answers import groups
from tests.client.fake_cluster import FakeCluster, coordinators

from ottla.client.admin.committed_offsets import OFFSET_DELETE, delete_offsets
from ottla.client.admin.groups import (
    Group,
    Member,
    described_groups,
    state_name,
    why_no_coordinator,
)
from ottla.client.coordinators import FIND_COORDINATOR
from ottla.client.errors import RefusedError
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import CONSUMER_GROUP_DESCRIBE


@pytest.mark.parametrize(
    ("code", "message", "reason"),
    [
        (ErrorCode.none, None, None),
        (ErrorCode.coordinator_not_available, "Too few brokers.", "Too few brokers"),
        (ErrorCode.coordinator_load_in_progress, None, "coordinator load in progress"),
        (ErrorCode.group_authorization_failed, "", "group authorization failed"),
    ],
)
@pytest.mark.parametrize("newest", [3, 6])
def test_why_a_group_has_no_coordinator(
    code: ErrorCode, message: str | None, reason: str | None, newest: int
) -> None:
    brokers = FakeCluster({FIND_COORDINATOR: [coordinators(code, message)]})
    brokers.versions["b1:9092"] = {FIND_COORDINATOR: (0, newest)}
    assert why_no_coordinator(brokers.client(), "g") == reason
    (request,) = brokers.requests(FIND_COORDINATOR)
    assert request.key_type == 0


def deleting(code: ErrorCode, of_partition: ErrorCode = ErrorCode.none) -> FakeCluster:
    def answer(address: str, request: Any) -> Any:
        assert address == "b2:9092"
        (topic,) = request.topics
        partitions = [(topic.name, each.partition_index) for each in topic.partitions]
        assert (request.group_id, partitions) == ("g", [("t", 0)])
        build = messages_of(OFFSET_DELETE, 0)
        partition = build.OffsetDeleteResponsePartition(partition_index=0, error_code=of_partition)
        found = build.OffsetDeleteResponseTopic(name="t", partitions=(partition,))
        return build.OffsetDeleteResponse(error_code=code, topics=(found,))

    return FakeCluster({OFFSET_DELETE: [answer]})


def test_offsets_are_deleted_by_the_coordinator() -> None:
    assert delete_offsets(deleting(ErrorCode.none).client(), "g", [("t", 0)]) == {}


def test_an_offset_that_is_kept_has_the_reason() -> None:
    kept = deleting(ErrorCode.none, ErrorCode.group_subscribed_to_topic)
    found = delete_offsets(kept.client(), "g", [("t", 0)])
    assert found == {("t", 0): ErrorCode.group_subscribed_to_topic}


def test_a_group_that_is_refused() -> None:
    refusing = deleting(ErrorCode.group_id_not_found)
    with pytest.raises(RefusedError, match="cannot delete offsets of group 'g': group id not fou"):
        delete_offsets(refusing.client(), "g", [("t", 0)])


def test_a_group_of_the_new_protocol_is_described_with_its_assignment() -> None:
    def answer(address: str, request: Any) -> Any:
        build = messages_of(CONSUMER_GROUP_DESCRIBE, request.__version__)
        partitions = build.TopicPartitions(topic_id=UUID(int=1), topic_name="t", partitions=(0, 2))
        assignment = build.Assignment(topic_partitions=(partitions,))
        member = build.Member(
            member_id="m",
            instance_id=None,
            rack_id=None,
            client_id="c",
            client_host="/h",
            subscribed_topic_regex=None,
            assignment=assignment,
            target_assignment=assignment,
        )
        found = build.DescribedGroup(
            error_message=None,
            group_id="new",
            group_state="Reconciling",
            assignor_name="uniform",
            members=(member,),
        )
        missing = build.DescribedGroup(
            error_code=ErrorCode.group_id_not_found, error_message=None, group_id="old"
        )
        return build.ConsumerGroupDescribeResponse(groups=(found, missing))

    old = Group("old", "preparing rebalancing", "classic", "range", 2, False, ())
    cluster = FakeCluster({**groups({"old": old}, {}), CONSUMER_GROUP_DESCRIBE: [answer]})
    for address in ("b1:9092", "b2:9092"):
        cluster.versions[address] = {CONSUMER_GROUP_DESCRIBE: (0, 1)}
    found = described_groups(cluster.client(), ["old", "new"])
    assert list(found) == ["old", "new"]
    partitions = (TopicPartition("t", 0), TopicPartition("t", 2))
    members = (Member("m", None, "c", "/h", partitions),)
    assert found["new"] == Group("new", "reconciling", "consumer", "uniform", 2, False, members)
    assert found["old"].type == "classic"


def test_states_are_words() -> None:
    names = ("Stable", "PreparingRebalance", "CompletingRebalance", "")
    assert [state_name(each) for each in names] == [
        *("stable", "preparing rebalancing", "completing rebalancing", "unknown")
    ]
