"""What the scans do: abort what is open for too long, ask for markers again, remove unused ids."""

from __future__ import annotations

import pytest
from tests.transactions.values import BEGAN_MS, TIMEOUT_MS, new_step, producer, value_in

from ottla.transactions.expiry import abort_timed_out, is_timed_out, remove_expired
from ottla.transactions.state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TransactionState,
)
from ottla.transactions.stored import MAX_EPOCH, TransactionRecord

END_MS = BEGAN_MS + TIMEOUT_MS
EXPIRATION_MS = 10_000


@pytest.mark.parametrize("state", TransactionState)
def test_only_an_open_transaction_times_out(state: TransactionState) -> None:
    assert not is_timed_out(value_in(state), END_MS)
    assert is_timed_out(value_in(state), END_MS + 1) is (state is ONGOING)


def test_the_scan_aborts_and_asks_for_markers_that_are_still_due() -> None:
    transactions = {
        "old": value_in(ONGOING),
        "young": value_in(ONGOING, start_ms=END_MS),
        "rests": value_in(EMPTY),
        "prepared": value_in(PREPARE_COMMIT),
    }
    step = new_step(END_MS + 1)
    assert abort_timed_out(transactions, 2, [], step) == 0
    (record,) = step.records
    assert record.transactional_id == "old"
    assert record.value is not None
    assert (record.value.state, record.value.producer) == (PREPARE_ABORT, producer(6))
    due = [(each.transactional_id, each.is_commit) for each in step.committed]
    assert due == [("old", False), ("prepared", True)]
    assert not step.is_atomic


def test_ids_without_epochs_wait_for_new_producer_ids_and_use_each_once() -> None:
    transactions = {
        "a": value_in(ONGOING, epoch=MAX_EPOCH),
        "b": value_in(ONGOING),
        "c": value_in(ONGOING, epoch=MAX_EPOCH),
    }
    step = new_step(END_MS + 1)
    assert abort_timed_out(transactions, 2, [], step) == 2
    assert [record.transactional_id for record in step.records] == ["b"]
    spares, step = [2000, 2001, 2002], new_step(END_MS + 1)
    assert abort_timed_out(transactions, 2, spares, step) == 0
    found = {
        record.transactional_id: record.value.next_producer_id
        for record in step.records
        if record.value is not None
    }
    assert found == {"a": 2002, "b": -1, "c": 2001}
    assert spares == [2000]


@pytest.mark.parametrize("state", TransactionState)
def test_an_id_expires_only_at_rest(state: TransactionState) -> None:
    rests = state in (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT)
    for age_ms, is_old in ((EXPIRATION_MS - 1, False), (EXPIRATION_MS, True)):
        step = new_step(BEGAN_MS + age_ms, id_expiration_ms=EXPIRATION_MS)
        remove_expired({"t": value_in(state)}, step)
        assert step.records == ([TransactionRecord("t", None)] if rests and is_old else [])
