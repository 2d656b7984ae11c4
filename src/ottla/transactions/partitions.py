"""The partitions of a transaction: adding them, and verifying that they were added.

A partition belongs to its transaction before the first record is written there; otherwise that
partition would get no marker. Clients of transaction.version below 2 add partitions themselves
(AddPartitionsToTxn, AddOffsetsToTxn) and the partition's leader verifies it; for the others the
leader adds them (KIP-890).
"""

from __future__ import annotations

from ottla.protocol.errors import ErrorCode
from ottla.shards.step import ProducerEpoch
from ottla.transactions.requests import AddRequest
from ottla.transactions.state import AT_REST, ONGOING, PREPARED
from ottla.transactions.step import Step
from ottla.transactions.stored import TopicPartition, TransactionRecord, TransactionValue


def add(value: TransactionValue | None, request: AddRequest, step: Step) -> ErrorCode:
    """Adds partitions, all or none; begins a transaction where none is open."""
    if value is None:
        return ErrorCode.invalid_producer_id_mapping
    if value.state in PREPARED:
        # First of all: the producer may have its next id and epoch already, which count once the
        # transaction before is complete. PRODUCER_FENCED would end it (KAFKA-18464).
        return ErrorCode.concurrent_transactions
    error = _producer_error(value, request.producer)
    if error is not ErrorCode.none:
        return error
    if value.state is ONGOING and request.partitions <= value.partitions:
        return ErrorCode.none
    partitions = value.partitions | request.partitions
    if len(partitions) > step.settings.max_partitions:
        # Kafka's error for a state that is too large to be stored (TransactionStateManager).
        return ErrorCode.unknown_server_error
    moved = value.moved(
        ONGOING,
        step.now_ms,
        partitions=partitions,
        start_ms=step.now_ms if value.state in AT_REST else value.start_ms,
        client_version=request.client_version,
    )
    step.records.append(TransactionRecord(request.transactional_id, moved))
    return ErrorCode.none


def verify(
    value: TransactionValue | None,
    producer: ProducerEpoch,
    partitions: frozenset[TopicPartition],
) -> dict[TopicPartition, ErrorCode]:
    """Whether each partition belongs to the producer's open transaction."""
    if value is None:
        error = ErrorCode.invalid_producer_id_mapping
    else:
        error = _producer_error(value, producer)
        if error is ErrorCode.none and value.state in PREPARED:
            error = ErrorCode.concurrent_transactions
    if value is None or error is not ErrorCode.none:
        return dict.fromkeys(partitions, error)
    return {
        partition: (
            ErrorCode.none if partition in value.partitions else ErrorCode.transaction_abortable
        )
        for partition in partitions
    }


def _producer_error(value: TransactionValue, producer: ProducerEpoch) -> ErrorCode:
    if producer.producer_id != value.producer_id:
        return ErrorCode.invalid_producer_id_mapping
    return ErrorCode.none if producer.epoch == value.epoch else ErrorCode.producer_fenced
