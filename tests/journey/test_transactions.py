"""The transaction of a record, and what holds the last stable offset."""

import pytest

from ottla.journey.moment import Document
from ottla.journey.transactions import (
    CoordinatedTransaction,
    EndMarker,
    OpenTransaction,
    TransactionFacts,
    read_committed,
    transaction_of,
)
from ottla.records.build import build_batch
from ottla.records.control import ControlType, write_end_marker
from ottla.records.header import BatchHeader, read_header
from ottla.records.record import Record

COMMIT = EndMarker(60, True, 5_000)
ABORT = EndMarker(60, False, 5_000)
OPEN = OpenTransaction(7, 1, 40, 4_000)
ONGOING = CoordinatedTransaction("x", 3, "Ongoing", 2_000, 60_000, True)


def header_of(*, is_transactional: bool = True, producer_id: int = 7) -> BatchHeader:
    records = [Record(0, 1000, b"k", b"v")] * 3
    return read_header(
        build_batch(
            records,
            base_offset=42,
            producer_id=producer_id,
            producer_epoch=1,
            base_sequence=0,
            is_transactional=is_transactional,
        )
    )


def test_a_record_outside_transactions_has_none() -> None:
    assert transaction_of(header_of(is_transactional=False), TransactionFacts(50, [OPEN])) is None


@pytest.mark.parametrize(
    ("marker", "state", "kind"), [(COMMIT, "committed", "commit"), (ABORT, "aborted", "abort")]
)
def test_the_marker_decides(marker: EndMarker, state: str, kind: str) -> None:
    # Another transaction of the producer may be open further on.
    later = OPEN._replace(first_offset=61)
    assert transaction_of(header_of(), TransactionFacts(61, [later], marker, 60)) == {
        "state": state,
        "producer": {"id": 7, "epoch": 1},
        "first_offset": None,
        "marker": {"offset": 60, "type": kind, "timestamp_ms": 5_000},
        "searched_to": None,
        "coordinator": None,
    }


def test_an_open_transaction() -> None:
    said = transaction_of(header_of(), TransactionFacts(40, [OPEN], coordinated={7: ONGOING}))
    assert said is not None
    assert said["coordinator"]["transactional_id"] == "x"
    assert (said["state"], said["first_offset"], said["marker"]) == ("open", 40, None)


@pytest.mark.parametrize("other", [OPEN._replace(producer_id=8), OPEN._replace(first_offset=45)])
def test_the_open_transaction_of_another_or_a_later_one(other: OpenTransaction) -> None:
    said = transaction_of(header_of(), TransactionFacts(40, [other], None, 900))
    assert said is not None
    assert (said["state"], said["searched_to"]) == ("unknown", 900)


def test_readers_get_what_is_below_the_last_stable_offset() -> None:
    visible = {"state": "visible", "last_stable_offset": 70, "held_by": None}
    for facts in (TransactionFacts(70), TransactionFacts(70, (), COMMIT)):
        assert read_committed(header_of(), 42, 80, facts) == visible


def test_readers_never_get_aborted_records_and_markers() -> None:
    facts = TransactionFacts(70, (), ABORT)
    assert read_committed(header_of(), 42, 70, facts)["state"] == "aborted"
    # The records of others in between are not concerned.
    other = header_of(is_transactional=False)
    assert read_committed(other, 42, 70, TransactionFacts(70))["state"] == "visible"
    marker = read_header(write_end_marker(ControlType.commit, 7, 1, 0, 5_000))
    assert read_committed(marker, 0, 70, TransactionFacts(70, (), COMMIT))["state"] == "control"


def test_the_oldest_open_transaction_holds_the_last_stable_offset() -> None:
    older = OpenTransaction(9, 0, 30, -1)
    facts = TransactionFacts(30, [older, OPEN], coordinated={9: ONGOING})
    said = read_committed(header_of(), 42, 80, facts)
    assert said == {
        "state": "waiting",
        "last_stable_offset": 30,
        "held_by": {
            "reason": "open_transaction",
            "producer": {"id": 9, "epoch": 0},
            "first_offset": 30,
            "last_write_ms": None,
            "coordinator": {
                "hanging": False,
                "unanswered": [],
                "transactional_id": "x",
                "broker": 3,
                "state": "Ongoing",
                "started_ms": 2_000,
                "times_out_ms": 62_000,
            },
        },
    }


def coordinator_of(facts: TransactionFacts) -> Document:
    held_by = read_committed(header_of(), 42, 80, facts)["held_by"]
    found: Document = held_by["coordinator"]
    return found


def test_a_decided_transaction_has_no_timeout() -> None:
    prepared = ONGOING._replace(state="PrepareCommit")
    said = coordinator_of(TransactionFacts(40, [OPEN], coordinated={7: prepared}))
    assert (said["state"], said["started_ms"], said["times_out_ms"]) == (
        "PrepareCommit",
        2_000,
        None,
    )


def test_a_transaction_that_hangs() -> None:
    said = coordinator_of(TransactionFacts(40, [OPEN]))
    assert (said["hanging"], said["transactional_id"]) == (True, None)
    ended = ONGOING._replace(state="CompleteAbort", has_partition=False)
    said = coordinator_of(TransactionFacts(40, [OPEN], coordinated={7: ended}))
    assert (said["hanging"], said["transactional_id"], said["times_out_ms"]) == (True, "x", None)


def test_brokers_that_do_not_answer_may_coordinate_it() -> None:
    said = coordinator_of(TransactionFacts(40, [OPEN], unanswered=(2, 3)))
    assert (said["hanging"], said["unanswered"]) == (None, [2, 3])


def test_a_marker_that_is_not_replicated_holds_it_too() -> None:
    facts = TransactionFacts(40, [OPEN._replace(first_offset=61)], COMMIT)
    said = read_committed(header_of(), 42, 60, facts)
    assert said["held_by"] == {"reason": "marker_not_replicated"}


def test_a_record_that_is_not_replicated() -> None:
    said = read_committed(
        header_of(), 42, 42, TransactionFacts(42, [OPEN._replace(first_offset=44)])
    )
    assert said["held_by"] == {"reason": "high_watermark"}


def test_what_holds_readers_is_not_guessed() -> None:
    """A broker that cannot say which transactions are open leaves both questions open."""
    facts = TransactionFacts(50, None, searched_to=42)
    reading = read_committed(header_of(), 52, 90, facts)
    assert (reading["state"], reading["held_by"]) == ("waiting", {"reason": "not_known"})
    transaction = transaction_of(header_of(), facts)
    assert transaction is not None
    assert (transaction["state"], transaction["searched_to"]) == ("unknown", 42)
