"""From a decided outcome to its end: who gets markers, and who the producer is afterwards."""

from __future__ import annotations

import pytest
from tests.transactions.values import ID, ONE, OTHER, new_step, producer, value_in, written

from ottla.transactions.complete import complete, completed_producer, markers_due
from ottla.transactions.state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TransactionState,
)
from ottla.transactions.step import MarkersDue
from ottla.transactions.stored import MAX_EPOCH, NO_PRODUCER_ID

NEXT = 2000


def test_markers_carry_the_producers_epoch_and_the_outcome() -> None:
    both = frozenset({ONE, OTHER})
    committed = value_in(PREPARE_COMMIT, partitions=both)
    assert markers_due(ID, committed) == MarkersDue(ID, producer(), True, both, 2)
    aborted = value_in(PREPARE_ABORT, client_version=0)
    assert markers_due(ID, aborted) == MarkersDue(ID, producer(), False, frozenset({ONE}), 0)
    with pytest.raises(AssertionError):
        markers_due(ID, value_in(ONGOING))


@pytest.mark.parametrize(
    ("prepared", "completed"),
    [(PREPARE_COMMIT, COMPLETE_COMMIT), (PREPARE_ABORT, COMPLETE_ABORT)],
)
def test_a_complete_transaction_has_no_partitions(
    prepared: TransactionState, completed: TransactionState
) -> None:
    step = new_step()
    complete(ID, value_in(prepared), step)
    value = written(step)
    assert (value.state, value.partitions, value.producer) == (completed, frozenset(), producer())
    assert step.committed == []


def test_the_next_producer_id_takes_over_when_the_transaction_is_complete() -> None:
    step = new_step()
    complete(ID, value_in(PREPARE_COMMIT, epoch=MAX_EPOCH, next_producer_id=NEXT), step)
    value = written(step)
    assert (value.producer, value.previous_producer_id) == (producer(0, NEXT), 1000)
    assert value.next_producer_id == NO_PRODUCER_ID


def test_below_version_2_no_other_producer_takes_over() -> None:
    value = value_in(PREPARE_COMMIT, next_producer_id=NEXT, client_version=0)
    assert completed_producer(value) == producer()
    assert completed_producer(value._replace(client_version=2)) == producer(0, NEXT)
