"""What the ledger of transactions accepts and what it reports."""

import pytest
from simulation.ledger import Ledger


def take_over(ledger: Ledger) -> int:
    return ledger.instances.initialized(ledger.instances.asking(0))


@pytest.fixture
def ledger() -> Ledger:
    made = Ledger("id")
    take_over(made)
    return made


def committed(ledger: Ledger, *, was_fenced: bool = False) -> int:
    number = ledger.begun()
    ledger.committing(number)
    ledger.ended(number, is_commit=True, was_fenced=was_fenced)
    return number


def test_committed_numbers_are_read(ledger: Ledger) -> None:
    ledger.read(0, ledger.floor)
    assert committed(ledger) == 1
    ledger.read(1, ledger.floor)
    assert committed(ledger) == 2
    assert (ledger.floor, ledger.committed) == (2, 2)
    ledger.read(1, 1)
    ledger.settled(2, 2)
    assert ledger.anomalies == []


def test_a_read_that_goes_back(ledger: Ledger) -> None:
    committed(ledger)
    committed(ledger)
    ledger.read(1, ledger.floor)
    assert ledger.anomalies == ["id: 1 was read after 2 was committed"]


def test_an_open_or_aborted_transaction_that_is_read(ledger: Ledger) -> None:
    number = ledger.begun()
    ledger.read(number, 0)
    ledger.ended(number, is_commit=False, was_fenced=False)
    ledger.read(number, 0)
    ledger.read(99, 0)
    assert ledger.anomalies == [
        "id: 1 was read, and its transaction is open",
        "id: 1 was read, and its transaction is aborted",
        "id: 99 was read, and its transaction is open",
    ]


def test_a_commit_without_an_answer_may_have_happened(ledger: Ledger) -> None:
    for happened in (True, False):
        number = ledger.begun()
        ledger.committing(number)
        before = ledger.floor
        ledger.settled(*[number if happened else before] * 2)
        ledger.read(number if happened else before, ledger.floor)
    assert ledger.anomalies == []
    assert ledger.committed == 1
    # Settled as aborted, it must not come back.
    ledger.read(number, ledger.floor)
    assert ledger.anomalies == ["id: 2 was read, and its transaction is aborted"]


def test_groups_that_differ(ledger: Ledger) -> None:
    committed(ledger)
    ledger.settled(1, 0)
    assert ledger.anomalies == ["id: one group is at 1, the other at 0"]


def test_a_fenced_producer_that_commits(ledger: Ledger) -> None:
    token = take_over(ledger)
    assert not ledger.instances.is_fenced(token)
    take_over(ledger)
    assert ledger.instances.is_fenced(token)
    committed(ledger, was_fenced=True)
    assert ledger.anomalies == ["id: a fenced producer committed 1"]


def test_an_answer_that_comes_after_the_next_producer_looked(ledger: Ledger) -> None:
    """The commit was fenced, or it was seen; a late answer does not count twice."""
    number = ledger.begun()
    ledger.committing(number)
    take_over(ledger)
    ledger.settled(number, number)
    ledger.ended(number, is_commit=True, was_fenced=False)
    assert (ledger.anomalies, ledger.committed) == ([], 1)
    other = ledger.begun()
    ledger.committing(other)
    ledger.settled(number, number)
    ledger.ended(other, is_commit=True, was_fenced=False)
    assert ledger.anomalies == ["id: 2 was committed after it was aborted"]
