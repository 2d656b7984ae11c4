"""Small transactions share an entry of the offset map."""

from __future__ import annotations

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.offset_map import Run
from ottla.mirroring.open_entries import MAX_JOINED, OpenEntries

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)


def test_an_entry_grows_to_its_limit() -> None:
    entries = OpenEntries()
    runs = [Run(10 * at, 11 * at, 10) for at in range(MAX_JOINED + 2)]
    for at, run in enumerate(runs):
        begin = 0 if at < MAX_JOINED else MAX_JOINED
        assert entries.joined(ONE, [run]) == runs[begin : at + 1]
        entries.note_committed()
    assert entries.joined(TWO, runs[:1]) == runs[:1]


def test_what_was_aborted_is_not_in_the_next_entry() -> None:
    entries = OpenEntries()
    entries.joined(ONE, [Run(0, 0, 5)])
    entries.note_committed()
    entries.joined(ONE, [Run(5, 6, 2)])
    entries.forget()
    assert entries.joined(ONE, [Run(5, 9, 1)]) == [Run(5, 9, 1)]


def test_many_runs_of_one_transaction_are_an_entry_of_their_own() -> None:
    entries = OpenEntries()
    entries.joined(ONE, [Run(0, 0, 5)])
    entries.note_committed()
    runs = [Run(10 + 2 * at, 10 + at, 1) for at in range(MAX_JOINED)]
    assert entries.joined(ONE, runs) == runs


def test_what_nothing_joins_is_not_kept() -> None:
    """A partition with gaps has as many runs in a transaction as records."""
    entries = OpenEntries()
    many = [Run(2 * at, at, 1) for at in range(100_000)]
    assert entries.joined(ONE, many) == many
    entries.note_committed()
    assert all(len(runs) < MAX_JOINED for runs in entries._committed.values())
    assert entries.joined(ONE, many[:1]) == many[:1]
    full = [Run(at, at, 1) for at in range(MAX_JOINED)]
    assert entries.joined(TWO, full) == full
    entries.note_committed()
    assert entries._committed == {ONE: many[:1]}
