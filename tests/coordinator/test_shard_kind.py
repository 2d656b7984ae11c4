"""What the error of an append means to a client of the coordinator."""

from __future__ import annotations

import pytest

from ottla.coordinator.shard_kind import coordinator_error
from ottla.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        # The client tries again with this coordinator.
        ("unknown_topic_or_partition", "coordinator_not_available"),
        ("not_enough_replicas", "coordinator_not_available"),
        ("not_enough_replicas_after_append", "coordinator_not_available"),
        ("request_timed_out", "coordinator_not_available"),
        ("network_exception", "coordinator_load_in_progress"),
        # It looks for another one.
        ("not_leader_or_follower", "not_coordinator"),
        ("kafka_storage_error", "not_coordinator"),
        # It gives up.
        ("message_too_large", "unknown_server_error"),
        ("record_list_too_large", "unknown_server_error"),
        ("invalid_fetch_size", "unknown_server_error"),
        # These are the client's own.
        ("producer_fenced", "producer_fenced"),
        ("invalid_txn_state", "invalid_txn_state"),
        ("none", "none"),
    ],
)
def test_errors_of_appends(code: str, expected: str) -> None:
    assert coordinator_error(ErrorCode[code]) is ErrorCode[expected]
