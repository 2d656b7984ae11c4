"""EndTxn: commits or aborts a transaction.

The answer goes out once the decision, PrepareCommit or PrepareAbort, is committed; markers follow.
The request's version decides about the rules, not the cluster (KIP-890):

    below 5   the epoch must be the current one and stays. A repeated request finds Complete* and
              succeeds, unless it asks for the opposite
    5         the decision bumps the epoch, and the answer has the new one. So the epoch tells a
              repeated request (one below) from the next transaction's (equal):

                              abort, one below / equal      commit, one below / equal
              Empty           PRODUCER_FENCED / bump        PRODUCER_FENCED / INVALID_TXN_STATE
              CompleteAbort   NONE / bump                   INVALID_TXN_STATE / INVALID_TXN_STATE
              CompleteCommit  INVALID_TXN_STATE / bump      NONE / INVALID_TXN_STATE

              An abort at rest is allowed because a producer may not know whether its transaction
              has begun: the first batch begins it. Where the epochs are used up, a new producer id
              takes over when the transaction is complete

While markers are written, requests get CONCURRENT_TRANSACTIONS and come again.
"""

from __future__ import annotations

from ottla.protocol.errors import ErrorCode
from ottla.transactions.abort import next_producer_id
from ottla.transactions.complete import completed_producer, markers_due
from ottla.transactions.requests import EPOCH_BUMP_VERSION, EndRequest, ProducerResult
from ottla.transactions.state import (
    AT_REST,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARED,
    TransactionState,
)
from ottla.transactions.step import Step
from ottla.transactions.stored import MAX_EPOCH, TransactionRecord, TransactionValue


def end(
    value: TransactionValue | None,
    request: EndRequest,
    new_producer_id: int | None,
    step: Step,
) -> ProducerResult:
    """The producer after the transaction; -1 for a client that keeps the one it has.

    Raises ProducerIdNeeded if a new id is needed and `new_producer_id` is None.
    """
    if value is None:
        return ProducerResult(ErrorCode.invalid_producer_id_mapping)
    if request.client_version >= EPOCH_BUMP_VERSION:
        return _end_with_bump(value, request, new_producer_id, step)
    return _end_in_same_epoch(value, request, step)


def _end_in_same_epoch(value: TransactionValue, request: EndRequest, step: Step) -> ProducerResult:
    if request.producer.producer_id != value.producer_id:
        return ProducerResult(ErrorCode.invalid_producer_id_mapping)
    if request.producer.epoch != value.epoch:
        return ProducerResult(ErrorCode.producer_fenced)
    if value.state in PREPARED:
        return ProducerResult(ErrorCode.concurrent_transactions)
    if value.state is not ONGOING:
        repeated = COMPLETE_COMMIT if request.is_commit else COMPLETE_ABORT
        done = value.state is repeated
        return ProducerResult(ErrorCode.none if done else ErrorCode.invalid_txn_state)
    ended = value.moved(_decided(request), step.now_ms, client_version=0)
    _write(request, ended, step)
    return ProducerResult(ErrorCode.none)


def _end_with_bump(
    value: TransactionValue, request: EndRequest, new_producer_id: int | None, step: Step
) -> ProducerResult:
    if value.state in PREPARED:
        # First of all, as in `partitions.add`.
        return ProducerResult(ErrorCode.concurrent_transactions)
    id_changed = _is_repeated_over_new_id(value, request)
    if request.producer.producer_id != value.producer_id and not id_changed:
        return ProducerResult(ErrorCode.invalid_producer_id_mapping)
    is_repeated = id_changed or request.producer.epoch + 1 == value.epoch
    # Kafka does not look at the version. But below 2 the last bump was that of a new producer: it
    # fences the one with the epoch below.
    is_repeated = is_repeated and value.client_version >= EPOCH_BUMP_VERSION
    if is_repeated and value.state in (COMPLETE_COMMIT, COMPLETE_ABORT):
        done = value.state is (COMPLETE_COMMIT if request.is_commit else COMPLETE_ABORT)
        if done:
            return ProducerResult(ErrorCode.none, value.producer)
        return ProducerResult(ErrorCode.invalid_txn_state)
    if request.producer.epoch != value.epoch:
        return ProducerResult(ErrorCode.producer_fenced)
    if value.state is not ONGOING and request.is_commit:
        return ProducerResult(ErrorCode.invalid_txn_state)
    ended = value.moved(
        _decided(request),
        step.now_ms,
        # 32767 is reached only by a fence of transaction.version below 2; an abort goes on then.
        epoch=min(value.epoch + 1, MAX_EPOCH),
        last_epoch=value.epoch,
        next_producer_id=next_producer_id(value, new_producer_id),
        # An abort without partitions has no other start.
        start_ms=step.now_ms if value.state in AT_REST else value.start_ms,
        client_version=request.client_version,
    )
    _write(request, ended, step)
    return ProducerResult(ErrorCode.none, completed_producer(ended))


def _is_repeated_over_new_id(value: TransactionValue, request: EndRequest) -> bool:
    """The answer to the request that used up the last epoch was lost."""
    return (
        request.producer.producer_id == value.previous_producer_id
        and request.producer.producer_id != value.producer_id
        and request.producer.epoch == MAX_EPOCH - 1
        and value.epoch == 0
    )


def _decided(request: EndRequest) -> TransactionState:
    return PREPARE_COMMIT if request.is_commit else PREPARE_ABORT


def _write(request: EndRequest, ended: TransactionValue, step: Step) -> None:
    step.records.append(TransactionRecord(request.transactional_id, ended))
    step.committed.append(markers_due(request.transactional_id, ended))
