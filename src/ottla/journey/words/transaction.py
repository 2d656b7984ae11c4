"""The transaction of a message in the journey's tree, and why read_committed readers wait."""

from __future__ import annotations

from typing import Any, Final

from ottla.journey.words.clock import Clock
from ottla.journey.words.line import BAD, GOOD, STEP, WAITING, WEAK, Branch, Document

_STATES: Final = {
    "open": ("open", WAITING),
    "committed": ("committed", GOOD),
    "aborted": ("aborted", BAD),
    "unknown": ("its marker was not found", WAITING),
}


def grow_transaction(top: Branch, document: Document, clock: Clock) -> None:
    """Adds nothing for a record outside transactions that read_committed readers get."""
    transaction, reading = document.get("transaction"), document.get("read_committed")
    if reading is None:
        return
    if transaction is not None:
        branch = _transaction(top, transaction, clock)
        if reading["state"] == "aborted":
            branch.add("read_committed readers do not get it; read_uncommitted readers do")
    elif reading["state"] == "waiting":
        branch = top.add(("Transaction  ", STEP), "none of its own")
    else:
        return
    if reading["state"] == "waiting":
        _waiting(branch, reading, clock)


def _transaction(top: Branch, transaction: Document, clock: Clock) -> Branch:
    text, style = _STATES[transaction["state"]]
    branch = top.add(("Transaction  ", STEP), (text, style), f"  by {_name(transaction)}")
    marker = transaction["marker"]
    if marker is not None:
        said = f"{marker['type']} at offset {marker['offset']}, "
        branch.add(("marker  ", WEAK), said, clock.at(marker["timestamp_ms"]))
    elif transaction["state"] == "unknown":
        branch.add(f"the log was searched up to offset {transaction['searched_to']}")
    elif transaction["first_offset"] is not None:
        branch.add(f"its first record here is at offset {transaction['first_offset']}")
    return branch


def _waiting(branch: Branch, reading: Document, clock: Clock) -> None:
    stable, held_by = reading["last_stable_offset"], reading["held_by"]
    stop = f"read_committed readers stop before it, at offset {stable}: "
    match held_by["reason"]:
        case "open_transaction":
            why = f"{_name(held_by)} has a transaction open since offset {held_by['first_offset']}"
            if held_by["last_write_ms"] is not None:
                why += f", last written to at {clock.at(held_by['last_write_ms'])}"
        case "marker_not_replicated":
            why = "the marker of an ended transaction is not replicated yet"
        case "not_known":
            why = "which transaction is open there is not known"
        case _:
            why = "it is not replicated yet"
    reason = branch.add((stop, WAITING), why)
    if held_by.get("coordinator") is not None:
        _coordinator(reason, held_by, clock)


def _coordinator(branch: Branch, held_by: Document, clock: Clock) -> None:
    """What ends the transaction that is waited for, and what to type if nothing does."""
    found = held_by["coordinator"]
    name = found["transactional_id"]
    if found["hanging"] is None:
        silent = ", ".join(map(str, found["unanswered"]))
        branch.add(("its transactional id is unknown", WEAK), f": no answer from broker {silent}")
        return
    if found["hanging"]:
        who = "no transactional id has this producer"
        if name is not None:
            who = f"the transaction of {name} does not include this partition"
        branch.add(("it hangs", BAD), f": {who}, so no coordinator will write its marker")
        branch.add("to find and abort it: ottla transaction hanging")
        return
    said = f"{name}, {found['state']}, since {clock.at(found['started_ms'])}"
    branch.add(("transactional id  ", WEAK), said)
    broker = f"broker {found['broker']}"
    if found["times_out_ms"] is None:
        branch.add(f"{broker} is writing its markers: ottla transaction describe {name}")
    else:
        at = clock.at(found["times_out_ms"])
        branch.add(f"{broker} aborts it after {at}; now: ottla transaction abort {name}")


def _name(document: Any) -> str:
    producer = document["producer"]
    return f"producer {producer['id']} (epoch {producer['epoch']})"
