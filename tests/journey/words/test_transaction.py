"""The transaction of a message in the tree."""

from typing import Any

from ottla.journey.words.clock import Clock
from ottla.journey.words.line import Branch, line
from ottla.journey.words.transaction import grow_transaction

VISIBLE = {"state": "visible", "last_stable_offset": 70, "held_by": None}
PRODUCER = {"id": 7, "epoch": 1}


def transaction(state: str, **more: Any) -> dict[str, Any]:
    known = {"first_offset": None, "marker": None, "searched_to": None}
    return {"state": state, "producer": PRODUCER, **known, **more}


def waiting(reason: str, **more: Any) -> dict[str, Any]:
    held_by = {"reason": reason, **more}
    return {"state": "waiting", "last_stable_offset": 40, "held_by": held_by}


def lines(own: dict[str, Any] | None, reading: dict[str, Any] | None) -> list[str]:
    top = line("t")
    document = {"transaction": own, "read_committed": reading}
    grow_transaction(top, document, Clock({"published": {"timestamp_ms": 1000}}))

    def walk(branch: Branch) -> list[str]:
        return [branch.text(), *(said for below in branch.below for said in walk(below))]

    return walk(top)[1:]


def test_a_record_outside_transactions_that_readers_get_has_no_line() -> None:
    assert lines(None, VISIBLE) == []
    assert lines(None, None) == []


def test_a_broker_of_an_earlier_version_says_nothing() -> None:
    top = line("t")
    grow_transaction(top, {}, Clock({"published": None}))
    assert top.below == []


def test_the_marker() -> None:
    marker = {"offset": 60, "type": "commit", "timestamp_ms": 5000}
    assert lines(transaction("committed", marker=marker), VISIBLE) == [
        "Transaction  committed  by producer 7 (epoch 1)",
        "marker  commit at offset 60, 00:00:05.000",
    ]
    marker["type"] = "abort"
    assert lines(transaction("aborted", marker=marker), {**VISIBLE, "state": "aborted"}) == [
        "Transaction  aborted  by producer 7 (epoch 1)",
        "marker  abort at offset 60, 00:00:05.000",
        "read_committed readers do not get it; read_uncommitted readers do",
    ]


def test_an_open_transaction_holds_its_own_records() -> None:
    held = waiting("open_transaction", producer=PRODUCER, first_offset=40, last_write_ms=4000)
    assert lines(transaction("open", first_offset=40), held) == [
        "Transaction  open  by producer 7 (epoch 1)",
        "its first record here is at offset 40",
        "read_committed readers stop before it, at offset 40: producer 7 (epoch 1) has a"
        " transaction open since offset 40, last written to at 00:00:04.000",
    ]


def test_the_transaction_of_another_holds_a_record() -> None:
    held = waiting("open_transaction", producer=PRODUCER, first_offset=40, last_write_ms=None)
    assert lines(None, held) == [
        "Transaction  none of its own",
        "read_committed readers stop before it, at offset 40: producer 7 (epoch 1) has a"
        " transaction open since offset 40",
    ]


def test_replication_holds_it() -> None:
    assert lines(None, waiting("marker_not_replicated"))[1].endswith(
        "the marker of an ended transaction is not replicated yet"
    )
    assert lines(None, waiting("high_watermark"))[1].endswith("it is not replicated yet")


def test_a_search_that_ended_early() -> None:
    assert lines(transaction("unknown", searched_to=900), VISIBLE) == [
        "Transaction  its marker was not found  by producer 7 (epoch 1)",
        "the log was searched up to offset 900",
    ]


def coordinator(**fields: Any) -> dict[str, Any]:
    nobody = dict.fromkeys(("transactional_id", "broker", "state", "started_ms", "times_out_ms"))
    return {"hanging": False, "unanswered": [], **nobody, **fields}


def coordinator_lines(found: dict[str, Any]) -> list[str]:
    held = waiting(
        "open_transaction",
        producer=PRODUCER,
        first_offset=40,
        last_write_ms=None,
        coordinator=found,
    )
    return lines(None, held)[2:]


def test_what_ends_the_transaction() -> None:
    known = {"transactional_id": "x", "broker": 3, "state": "Ongoing", "started_ms": 2_000}
    assert coordinator_lines(coordinator(**known, times_out_ms=62_000)) == [
        "transactional id  x, Ongoing, since 00:00:02.000",
        "broker 3 aborts it after 00:01:02.000; now: ottla transaction abort x",
    ]
    known["state"] = "PrepareCommit"
    assert coordinator_lines(coordinator(**known)) == [
        "transactional id  x, PrepareCommit, since 00:00:02.000",
        "broker 3 is writing its markers: ottla transaction describe x",
    ]


def test_nothing_ends_a_hanging_transaction() -> None:
    assert coordinator_lines(coordinator(hanging=True)) == [
        "it hangs: no transactional id has this producer, so no coordinator will write its marker",
        "to find and abort it: ottla transaction hanging",
    ]
    (hangs, _) = coordinator_lines(coordinator(hanging=True, transactional_id="x"))
    assert "the transaction of x does not include this partition" in hangs


def test_brokers_that_do_not_answer() -> None:
    assert coordinator_lines(coordinator(hanging=None, unanswered=[2, 3])) == [
        "its transactional id is unknown: no answer from broker 2, 3"
    ]
