"""The end of a transaction whose outcome is decided: markers, then Complete*."""

from __future__ import annotations

from ottla.shards.step import ProducerEpoch
from ottla.transactions.requests import EPOCH_BUMP_VERSION
from ottla.transactions.state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    PREPARE_COMMIT,
    PREPARED,
)
from ottla.transactions.step import MarkersDue, Step
from ottla.transactions.stored import NO_PRODUCER_ID, TransactionRecord, TransactionValue


def markers_due(transactional_id: str, value: TransactionValue) -> MarkersDue:
    """What is left to write for a transaction in PrepareCommit or PrepareAbort."""
    assert value.state in PREPARED
    return MarkersDue(
        transactional_id,
        value.producer,
        value.state is PREPARE_COMMIT,
        value.partitions,
        value.client_version,
    )


def completed_producer(value: TransactionValue) -> ProducerEpoch:
    """The producer after this prepared transaction: the same, or its successor at epoch 0."""
    if value.client_version >= EPOCH_BUMP_VERSION and value.next_producer_id != NO_PRODUCER_ID:
        return ProducerEpoch(value.next_producer_id, 0)
    return value.producer


def complete(transactional_id: str, value: TransactionValue, step: Step) -> None:
    """Every partition has its marker, or is deleted."""
    producer = completed_producer(value)
    completed = value.moved(
        COMPLETE_COMMIT if value.state is PREPARE_COMMIT else COMPLETE_ABORT,
        step.now_ms,
        producer_id=producer.producer_id,
        epoch=producer.epoch,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
    )
    step.records.append(TransactionRecord(transactional_id, completed))
