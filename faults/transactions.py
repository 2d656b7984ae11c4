"""Checks transactions: all or nothing of each is read, once it has ended. Pure.

- A committed transaction: each of its records is in the final read, and its offset is committed.
- An aborted one, or one whose commit nobody asked for: neither its records nor its offset are read.
- One whose outcome the client did not learn: all of it is in the final read, or nothing.
- An instance commits nothing after a newer one with its transactional id was initialized.

That no value is read twice or out of order is checked for all values, in `checker`. Records of one
transaction in several partitions become visible one after the other, so only the final read must
have all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from faults.anomaly import Anomaly, Kind
from faults.history import (
    Ended,
    Ending,
    Event,
    FinalOffset,
    FinalRead,
    Initialized,
    Polled,
    Sent,
    parts_of_transaction,
)

NO_PARTITION = -1


class Fate(Enum):
    """The outcome of a transaction, as far as its client knows it."""

    OPEN = "still open"
    """No commit was requested."""
    UNKNOWN = "of unknown outcome"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True)
class Transaction:
    """One transaction, at the end of the history."""

    name: str
    records: list[Sent] = field(default_factory=list)
    fate: Fate = Fate.OPEN


@dataclass(slots=True)
class Seen:
    """What readers saw, at the end of the history."""

    polled: dict[str, int] = field(default_factory=dict)
    """The partition of each value that the group polled."""
    final: dict[int, set[str]] = field(default_factory=dict)
    """The values of each partition with a final read."""
    offsets: dict[str, int] = field(default_factory=dict)
    """The number of the last transaction whose offset is committed, by transactional id."""


def check(events: Sequence[Event]) -> Iterator[Anomaly]:
    """All anomalies of transactions; no policy allows any of them."""
    transactions, seen = _gathered(events)
    for each in transactions.values():
        yield from _records(each, seen)
    yield from _offsets(transactions, seen)
    yield from _zombies(events)


def _gathered(events: Sequence[Event]) -> tuple[dict[str, Transaction], Seen]:
    transactions: dict[str, Transaction] = {}
    seen = Seen()
    for event in events:
        match event:
            case Sent(transaction=str() as name):
                transactions.setdefault(name, Transaction(name)).records.append(event)
            case Ending(is_commit=True):
                transactions.setdefault(
                    event.transaction, Transaction(event.transaction)
                ).fate = Fate.UNKNOWN
            case Ended():
                fate = Fate.COMMITTED if event.is_commit else Fate.ABORTED
                transactions.setdefault(
                    event.transaction, Transaction(event.transaction)
                ).fate = fate
            case Polled():
                seen.polled.update((value, event.partition) for _, value in event.records)
            case FinalRead():
                seen.final[event.partition] = {value for _, value in event.records}
            case FinalOffset():
                seen.offsets[event.transactional_id] = event.offset
    return transactions, seen


def _records(transaction: Transaction, seen: Seen) -> Iterator[Anomaly]:
    finally_read = [
        each for each in transaction.records if each.value in seen.final.get(each.partition, ())
    ]
    if transaction.fate in (Fate.OPEN, Fate.ABORTED):
        for each in transaction.records:
            if each in finally_read or each.value in seen.polled:
                what = f"{each.value} was read, and {transaction.name} is {transaction.fate.value}"
                yield Anomaly(Kind.aborted_read, each.partition, what)
        return
    missing = [
        each
        for each in transaction.records
        if each.partition in seen.final and each not in finally_read
    ]
    if not missing or (transaction.fate is Fate.UNKNOWN and not finally_read):
        return
    kind = Kind.torn_transaction if finally_read else Kind.lost_write
    values = ", ".join(each.value for each in missing)
    what = f"{values} of {transaction.name}, {transaction.fate.value}, are missing at the end"
    yield Anomaly(kind, missing[0].partition, what)


def _offsets(transactions: dict[str, Transaction], seen: Seen) -> Iterator[Anomaly]:
    """The offset at the end is the number of the last transaction that was committed."""
    numbered: dict[str, dict[int, Transaction]] = defaultdict(dict)
    for each in transactions.values():
        own_id, number = parts_of_transaction(each.name)
        numbered[own_id][number] = each
    for own_id, offset in seen.offsets.items():
        found = numbered[own_id]
        committed = [number for number, each in found.items() if each.fate is Fate.COMMITTED]
        if offset < max(committed, default=0):
            what = f"the offset of {own_id} ended at {offset}, though {max(committed)} is committed"
            yield Anomaly(Kind.lost_commit, NO_PARTITION, what)
        last = found.get(offset)
        if last is not None and last.fate in (Fate.OPEN, Fate.ABORTED):
            what = f"the offset of {last.name} is committed, and it is {last.fate.value}"
            yield Anomaly(Kind.aborted_read, NO_PARTITION, what)
        for number, each in found.items():
            if each.fate is Fate.UNKNOWN and number >= offset:
                yield from _torn(each, seen, has_offset=number == offset)


def _torn(transaction: Transaction, seen: Seen, *, has_offset: bool) -> Iterator[Anomaly]:
    """Its records are read exactly if its offset is committed. No later one committed an offset."""
    for each in transaction.records:
        values = seen.final.get(each.partition)
        if values is not None and (each.value in values) != has_offset:
            read, committed = ("not read", "is") if has_offset else ("read", "is not")
            what = f"{each.value} was {read}, and the offset of {transaction.name} {committed}"
            yield Anomaly(Kind.torn_transaction, each.partition, f"{what} committed")
            return


def _zombies(events: Sequence[Event]) -> Iterator[Anomaly]:
    """`Initialized` comes after the answer and `Ending` before the request, so their order in the
    history is the order of what happened."""
    newest: dict[str, int] = {}
    was_fenced: set[tuple[str, int]] = set()
    for event in events:
        match event:
            case Initialized():
                newest[event.transactional_id] = max(
                    newest.get(event.transactional_id, -1), event.instance
                )
            case Ending(is_commit=True):
                own_id, _ = parts_of_transaction(event.transaction)
                if newest.get(own_id, -1) > event.instance:
                    was_fenced.add((event.transaction, event.instance))
            case Ended(is_commit=True) if (event.transaction, event.instance) in was_fenced:
                what = (
                    f"instance {event.instance} committed {event.transaction} after it was fenced"
                )
                yield Anomaly(Kind.zombie_commit, NO_PARTITION, what)
