"""InitProducerId of a transactional producer: its id and epoch (KIP-98, KIP-360).

What a producer that names no epoch gets fences all before it: the next epoch. One that goes on
after an error names what it has:

    expected epoch      result
    none                +1, no last epoch
    the current one     +1, the current one becomes the last
    the last one        the current one again: the answer to the first request was lost
    any other           PRODUCER_FENCED

Its producer id must be the current one, or the previous one with its epochs used up. Where the
current epoch is the last of its id, a new id begins at epoch 0.
"""

from __future__ import annotations

from ottla.protocol.errors import ErrorCode
from ottla.shards.step import ProducerEpoch
from ottla.transactions.abort import abort_on_server
from ottla.transactions.requests import InitRequest, ProducerResult
from ottla.transactions.state import EMPTY, ONGOING, PREPARED
from ottla.transactions.step import ProducerIdNeeded, Step
from ottla.transactions.stored import (
    NO_EPOCH,
    NO_TIMESTAMP,
    TransactionRecord,
    TransactionValue,
    is_exhausted,
)


def begin(request: InitRequest, new_producer_id: int | None, step: Step) -> ProducerResult:
    """The first producer of a transactional id.

    It gets a new producer id even if it names one: the coordinator has forgotten it.
    """
    if new_producer_id is None:
        raise ProducerIdNeeded
    value = TransactionValue(
        producer_id=new_producer_id,
        epoch=0,
        timeout_ms=request.timeout_ms,
        state=EMPTY,
        partitions=frozenset(),
        last_update_ms=step.now_ms,
        previous_producer_id=new_producer_id,
    )
    return _initialized(request, value, step)


def initialize(
    value: TransactionValue, request: InitRequest, new_producer_id: int | None, step: Step
) -> ProducerResult:
    """The next producer of a known transactional id, or the same one again.

    Raises ProducerIdNeeded if a new id is needed and `new_producer_id` is None.
    """
    if value.state in PREPARED:
        return ProducerResult(ErrorCode.concurrent_transactions)
    if request.expected is not None and not _has_its_id(value, request.expected):
        return ProducerResult(ErrorCode.producer_fenced)
    if value.state is ONGOING:
        # The client asks again, and gets an epoch once the transaction is aborted.
        abort_on_server(
            request.transactional_id, value, request.cluster_version, new_producer_id, step
        )
        return ProducerResult(ErrorCode.concurrent_transactions)
    expected_epoch = None if request.expected is None else request.expected.epoch
    if value.is_exhausted and expected_epoch in (None, value.epoch):
        if new_producer_id is None:
            raise ProducerIdNeeded
        producer, last_epoch = ProducerEpoch(new_producer_id, 0), expected_epoch
    elif expected_epoch is None:
        producer, last_epoch = ProducerEpoch(value.producer_id, value.epoch + 1), None
    elif expected_epoch == value.epoch:
        producer, last_epoch = ProducerEpoch(value.producer_id, value.epoch + 1), value.epoch
    elif expected_epoch == value.last_epoch:
        producer, last_epoch = value.producer, value.last_epoch
    else:
        return ProducerResult(ErrorCode.producer_fenced)
    moved = value.moved(
        EMPTY,
        step.now_ms,
        producer_id=producer.producer_id,
        epoch=producer.epoch,
        last_epoch=NO_EPOCH if last_epoch is None else last_epoch,
        timeout_ms=request.timeout_ms,
        partitions=frozenset(),
        start_ms=NO_TIMESTAMP,
    )
    return _initialized(request, moved, step)


def _has_its_id(value: TransactionValue, expected: ProducerEpoch) -> bool:
    return expected.producer_id == value.producer_id or (
        expected.producer_id == value.previous_producer_id and is_exhausted(expected.epoch)
    )


def _initialized(request: InitRequest, value: TransactionValue, step: Step) -> ProducerResult:
    step.records.append(TransactionRecord(request.transactional_id, value))
    return ProducerResult(ErrorCode.none, value.producer)
