from __future__ import annotations

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.transactions.marker_outcome import MarkerOutcome, outcome_of


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ErrorCode.none, MarkerOutcome.WRITTEN),
        (ErrorCode.not_leader_or_follower, MarkerOutcome.RETRY),
        (ErrorCode.unknown_topic_or_partition, MarkerOutcome.RETRY),
        (ErrorCode.not_enough_replicas, MarkerOutcome.RETRY),
        (ErrorCode.not_enough_replicas_after_append, MarkerOutcome.RETRY),
        (ErrorCode.request_timed_out, MarkerOutcome.RETRY),
        (ErrorCode.kafka_storage_error, MarkerOutcome.RETRY),
        (ErrorCode.not_coordinator, MarkerOutcome.RETRY),
        (ErrorCode.invalid_producer_epoch, MarkerOutcome.GIVE_UP),
        (ErrorCode.transaction_coordinator_fenced, MarkerOutcome.GIVE_UP),
        (ErrorCode.corrupt_message, MarkerOutcome.GIVE_UP),
        (ErrorCode.unknown_server_error, MarkerOutcome.GIVE_UP),
    ],
)
def test_outcome(error: ErrorCode, outcome: MarkerOutcome) -> None:
    assert outcome_of(error) is outcome
