"""A transaction that the coordinator aborts, and how its producer is fenced by that."""

from __future__ import annotations

import pytest
from tests.transactions.values import ID, ONE, new_step, producer, value_in, written

from ottla.transactions.abort import abort_on_server, next_producer_id
from ottla.transactions.state import EMPTY, ONGOING, PREPARE_ABORT
from ottla.transactions.step import MarkersDue, ProducerIdNeeded
from ottla.transactions.stored import MAX_EPOCH, NO_EPOCH, NO_PRODUCER_ID

SPARE = 2000


def test_from_version_2_on_the_producer_can_go_on_after_the_abort() -> None:
    step = new_step()
    abort_on_server(ID, value_in(ONGOING), 2, None, step)
    aborted = written(step)
    assert (aborted.state, aborted.producer) == (PREPARE_ABORT, producer(6))
    assert (aborted.last_epoch, aborted.client_version) == (5, 2)
    assert step.committed == [MarkersDue(ID, producer(6), False, frozenset({ONE}), 2)]


def test_below_version_2_the_producer_is_fenced_for_good() -> None:
    step = new_step()
    abort_on_server(ID, value_in(ONGOING, client_version=0), 1, None, step)
    aborted = written(step)
    assert (aborted.producer, aborted.last_epoch) == (producer(6), NO_EPOCH)
    assert (aborted.next_producer_id, aborted.client_version) == (NO_PRODUCER_ID, 0)


@pytest.mark.parametrize("epoch", [MAX_EPOCH - 1, MAX_EPOCH])
def test_the_last_epoch_needs_the_next_producer_id(epoch: int) -> None:
    value, step = value_in(ONGOING, epoch=epoch), new_step()
    with pytest.raises(ProducerIdNeeded):
        abort_on_server(ID, value, 2, None, step)
    assert (step.records, step.committed) == ([], [])
    abort_on_server(ID, value, 2, SPARE, step)
    aborted = written(step)
    assert aborted.producer == producer(MAX_EPOCH)
    assert aborted.next_producer_id == SPARE


def test_below_version_2_an_exhausted_producer_id_stays() -> None:
    step = new_step()
    abort_on_server(ID, value_in(ONGOING, epoch=MAX_EPOCH), 1, None, step)
    aborted = written(step)
    assert (aborted.producer, aborted.next_producer_id) == (producer(MAX_EPOCH), NO_PRODUCER_ID)


def test_a_spare_id_is_left_alone_while_there_are_epochs() -> None:
    assert next_producer_id(value_in(EMPTY, epoch=MAX_EPOCH - 2), SPARE) == NO_PRODUCER_ID
    assert next_producer_id(value_in(EMPTY, epoch=MAX_EPOCH - 1), SPARE) == SPARE


def test_only_an_open_transaction_is_aborted() -> None:
    with pytest.raises(AssertionError):
        abort_on_server(ID, value_in(EMPTY), 2, None, new_step())
