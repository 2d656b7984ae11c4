"""What a partition's leader asks the coordinator before a transaction's first append (KIP-890).

The version of the producer's request decides:

    Produce   TxnOffsetCommit   the leader
    below 11  below 4           verifies that the client has added the partition
    11        4                 the same; the client knows TRANSACTION_ABORTABLE
    12 on     5 on              adds the partition itself

Errors of the coordinator reach the producer as errors that it knows (ReplicaManager,
AddPartitionsToTxnManager).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ottla.protocol.errors import ErrorCode


class Asked(Enum):
    """What the leader asks for."""

    VERIFIED = "verified"
    """For a client that does not know TRANSACTION_ABORTABLE."""
    VERIFIED_ABORTABLE = "verified, abortable"
    ADDED = "added"

    @property
    def adds(self) -> bool:
        return self is Asked.ADDED


_PRODUCE_ABORTABLE: Final = 11
_COMMIT_ABORTABLE: Final = 4
_NOT_VERIFIED_NOW: Final = frozenset(
    {
        ErrorCode.network_exception,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
    }
)


def asked_for_produce(version: int) -> Asked:
    """By the version of the Produce request."""
    return _asked(version, _PRODUCE_ABORTABLE)


def asked_for_offset_commit(version: int) -> Asked:
    """By the version of the TxnOffsetCommit request."""
    return _asked(version, _COMMIT_ABORTABLE)


def _asked(version: int, abortable: int) -> Asked:
    if version > abortable:
        return Asked.ADDED
    return Asked.VERIFIED_ABORTABLE if version == abortable else Asked.VERIFIED


def client_error(error: ErrorCode, asked: Asked) -> ErrorCode:
    """The coordinator's error in terms that this client knows.

    A producer handles INVALID_PRODUCER_EPOCH here by aborting; PRODUCER_FENCED, the coordinator's
    word for the same, would end it (KAFKA-14278).
    """
    if error is ErrorCode.producer_fenced:
        return ErrorCode.invalid_producer_epoch
    if error is ErrorCode.transaction_abortable and asked is Asked.VERIFIED:
        return ErrorCode.invalid_txn_state
    return error


def produce_error(error: ErrorCode, asked: Asked) -> ErrorCode:
    """The same for the answer to Produce: NOT_ENOUGH_REPLICAS makes every client repeat the request
    without new metadata. CONCURRENT_TRANSACTIONS stays for clients that have their partitions
    added, as they know it there.
    """
    if error in _NOT_VERIFIED_NOW:
        return ErrorCode.not_enough_replicas
    if error is ErrorCode.concurrent_transactions and not asked.adds:
        return ErrorCode.not_enough_replicas
    return client_error(error, asked)
