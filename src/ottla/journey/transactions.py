"""The transaction that a record belongs to, and what a read_committed reader waits for. Pure.

A record of a transaction counts once the transaction's commit marker, a control record, is in the
partition's log after it; an abort marker takes it away. Readers under read_committed end at the
last stable offset: the first record of the oldest transaction that is open, or whose marker is not
replicated yet (KIP-98).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.journey.moment import Document
from ottla.records.header import BatchHeader


class OpenTransaction(NamedTuple):
    """A transaction without a marker in this partition."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    """Its first record here."""
    last_write_ms: int
    """The timestamp of its last record here; -1 if it has none."""


class EndMarker(NamedTuple):
    """The control record that ended a transaction in this partition."""

    offset: int
    is_commit: bool
    timestamp_ms: int
    """By the clock of the broker that wrote it."""


class CoordinatedTransaction(NamedTuple):
    """What a coordinator says of a producer's transaction."""

    transactional_id: str
    broker_id: int
    """The coordinator."""
    state: str
    """Ongoing, PrepareCommit ... (Kafka's names)."""
    started_ms: int
    timeout_ms: int
    has_partition: bool
    """The coordinator will write a marker to this partition. Otherwise the transaction hangs."""


@dataclass(frozen=True, slots=True)
class TransactionFacts:
    """What the partition says of transactions, and the coordinators of the one that is waited
    for.
    """

    last_stable_offset: int
    open: Sequence[OpenTransaction] | None = ()
    """None: not known."""
    marker: EndMarker | None = None
    """The one that ended the record's transaction, or the record itself if that is a marker."""
    searched_to: int = 0
    """The log was searched for the marker up to here."""
    coordinated: Mapping[int, CoordinatedTransaction] = field(default_factory=dict)
    """By producer id."""
    unanswered: tuple[int, ...] = ()
    """Brokers that may coordinate it and did not answer."""
    was_aborted: bool | None = None
    """How the record's transaction ended, where that is known without its marker."""


def transaction_of(header: BatchHeader, facts: TransactionFacts) -> Document | None:
    """The transaction of a batch's records; None where they belong to none.

    `state` is open, committed or aborted; unknown: the search for the marker ended early.
    """
    if not header.is_transactional:
        return None
    marker, first_offset = facts.marker, None
    if marker is not None:
        state = "committed" if marker.is_commit else "aborted"
    elif facts.was_aborted is not None:
        state = "aborted" if facts.was_aborted else "committed"
    else:
        state = "unknown"
        for each in facts.open or ():
            if each.producer_id == header.producer_id and each.first_offset <= header.base_offset:
                state, first_offset = "open", each.first_offset
    return {
        "state": state,
        "producer": {"id": header.producer_id, "epoch": header.producer_epoch},
        "first_offset": first_offset,
        "marker": None
        if marker is None
        else {
            "offset": marker.offset,
            "type": "commit" if marker.is_commit else "abort",
            "timestamp_ms": marker.timestamp_ms,
        },
        "searched_to": facts.searched_to if state == "unknown" else None,
        "coordinator": _coordinator(header.producer_id, facts) if state == "open" else None,
    }


def read_committed(
    header: BatchHeader, offset: int, high_watermark: int, facts: TransactionFacts
) -> Document:
    """Whether a reader under read_committed gets the record at `offset`.

    `state`: visible, aborted or control (never returned), or waiting; then `held_by` says for what.
    """
    state, held_by = "visible", None
    if offset >= facts.last_stable_offset:
        state, held_by = "waiting", _held_by(high_watermark, facts)
    elif header.is_control:
        state = "control"
    elif header.is_transactional and _is_aborted(facts):
        state = "aborted"
    return {
        "state": state,
        "last_stable_offset": facts.last_stable_offset,
        "held_by": held_by,
    }


def _is_aborted(facts: TransactionFacts) -> bool:
    return facts.was_aborted is True if facts.marker is None else not facts.marker.is_commit


def _held_by(high_watermark: int, facts: TransactionFacts) -> Document:
    """What holds the last stable offset where it is."""
    stable = facts.last_stable_offset
    if stable >= high_watermark:
        return {"reason": "high_watermark"}
    if facts.open is None:
        return {"reason": "not_known"}
    for each in facts.open:
        if each.first_offset <= stable:
            return {
                "reason": "open_transaction",
                "producer": {"id": each.producer_id, "epoch": each.producer_epoch},
                "first_offset": each.first_offset,
                "last_write_ms": None if each.last_write_ms < 0 else each.last_write_ms,
                "coordinator": _coordinator(each.producer_id, facts),
            }
    return {"reason": "marker_not_replicated"}


def _coordinator(producer_id: int, facts: TransactionFacts) -> Document:
    """Who will end an open transaction, and by when.

    `hanging`: no coordinator will. It is null if that is unknown: `unanswered` brokers may
    coordinate it.
    """
    found = facts.coordinated.get(producer_id)
    if found is None:
        return {
            "hanging": None if facts.unanswered else True,
            "unanswered": list(facts.unanswered),
            "transactional_id": None,
            "broker": None,
            "state": None,
            "started_ms": None,
            "times_out_ms": None,
        }
    is_ongoing = found.has_partition and found.state == "Ongoing"
    return {
        "hanging": not found.has_partition,
        "unanswered": [],
        "transactional_id": found.transactional_id,
        "broker": found.broker_id,
        "state": found.state,
        "started_ms": found.started_ms if found.has_partition else None,
        # A decided transaction has no timeout: its markers are written, however long that takes.
        "times_out_ms": found.started_ms + found.timeout_ms if is_ongoing else None,
    }
