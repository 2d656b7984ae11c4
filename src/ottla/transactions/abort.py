"""Aborting an open transaction on the server's side: a new producer came, or the time is over.

The same step fences the producer, as its epoch is bumped with the abort. The rules are those of the
cluster's transaction.version, whatever the client's:

    below 2   the new epoch is one that no client gets: the producer is fenced for good
    2         the producer's epoch becomes the last one, so the producer can go on after
              InitProducerId (KIP-890). It is bumped once, not twice (KAFKA-19367)

Nothing is consumed before the record is appended: a write that fails takes no epochs
(KAFKA-9666).
"""

from __future__ import annotations

from ottla.transactions.complete import markers_due
from ottla.transactions.requests import EPOCH_BUMP_VERSION
from ottla.transactions.state import ONGOING, PREPARE_ABORT
from ottla.transactions.step import ProducerIdNeeded, Step
from ottla.transactions.stored import (
    MAX_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    TransactionRecord,
    TransactionValue,
)


def abort_on_server(
    transactional_id: str,
    value: TransactionValue,
    cluster_version: int,
    new_producer_id: int | None,
    step: Step,
) -> None:
    """Fences the producer of an open transaction and aborts it.

    Raises ProducerIdNeeded if the epochs are used up and `new_producer_id` is None.
    """
    assert value.state is ONGOING
    bumps = cluster_version >= EPOCH_BUMP_VERSION
    next_id = next_producer_id(value, new_producer_id) if bumps else NO_PRODUCER_ID
    aborted = value.moved(
        PREPARE_ABORT,
        step.now_ms,
        # An epoch that is at its end already stays there, and the abort goes on.
        epoch=min(value.epoch + 1, MAX_EPOCH),
        last_epoch=value.epoch if bumps else NO_EPOCH,
        next_producer_id=next_id,
        client_version=cluster_version if bumps else 0,
    )
    step.records.append(TransactionRecord(transactional_id, aborted))
    step.committed.append(markers_due(transactional_id, aborted))


def next_producer_id(value: TransactionValue, new_producer_id: int | None) -> int:
    """The id that follows when this producer's epochs are used up, or NO_PRODUCER_ID.

    Raises ProducerIdNeeded if one is needed and not given.
    """
    if not value.is_exhausted:
        return NO_PRODUCER_ID
    if new_producer_id is None:
        raise ProducerIdNeeded
    return new_producer_id
