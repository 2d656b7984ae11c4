"""What the answer to a marker means for its partition.

Kafka's counterpart is TransactionMarkerRequestCompletionHandler.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ottla.protocol.errors import ErrorCode


class MarkerOutcome(Enum):
    """What becomes of a partition whose marker was sent."""

    WRITTEN = "written"
    RETRY = "retry"
    """At the leader of then, which may be another broker."""
    GIVE_UP = "give up"
    """This coordinator must not write it: another one has, or our own bug is in the way."""


_RETRIED: Final = frozenset(
    {
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.not_leader_or_follower,
        ErrorCode.not_enough_replicas,
        ErrorCode.not_enough_replicas_after_append,
        ErrorCode.request_timed_out,
        ErrorCode.kafka_storage_error,
        # Of a partition of __consumer_offsets, whose group coordinator writes the marker.
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
    }
)


def outcome_of(error: ErrorCode) -> MarkerOutcome:
    """What to do after this error.

    INVALID_PRODUCER_EPOCH and TRANSACTION_COORDINATOR_FENCED end this coordinator's attempts: the
    partition has heard of a later transaction, or of a later coordinator.
    """
    if error is ErrorCode.none:
        return MarkerOutcome.WRITTEN
    return MarkerOutcome.RETRY if error in _RETRIED else MarkerOutcome.GIVE_UP
