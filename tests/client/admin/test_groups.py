"""A group's coordinator, and the offsets that it deletes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster, coordinators

from ottla.client.admin.committed_offsets import OFFSET_DELETE, delete_offsets
from ottla.client.admin.groups import why_no_coordinator
from ottla.client.coordinators import FIND_COORDINATOR
from ottla.client.errors import RefusedError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of


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
        places = [(topic.name, each.partition_index) for each in topic.partitions]
        assert (request.group_id, places) == ("g", [("t", 0)])
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
