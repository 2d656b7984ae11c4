"""What readers of a compacted partition may get. Pure.

Compaction removes records, but never the last one of a key. So:

- A record has one offset, and an offset has one record, for every reader and at all times.
- Offsets grow, and a fetch begins with the batch of its offset or the first one after it.
- Who has read everything has, of each key, the last record that was acknowledged, or a later one. A
  key whose last record is a tombstone may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Keyed(NamedTuple):
    """A record; all values differ. `value` None: a tombstone, which `number` tells from others."""

    key: str
    number: int
    is_tombstone: bool


class KeyedLedger:
    """The records of one partition. `anomalies` says what went wrong."""

    def __init__(self, name: str) -> None:
        self.anomalies: list[str] = []
        self.gaps = 0
        """How many gaps readers have met."""
        self._name = name
        self._sent: dict[int, Keyed] = {}
        self._offsets: dict[int, int] = {}
        """By number: where the record was acknowledged or read."""
        self._at: dict[int, Keyed] = {}
        self._last: dict[str, int] = {}
        """By key: the offset of the last record that was acknowledged."""

    def sending(self, key: str, *, is_tombstone: bool) -> Keyed:
        """The next record."""
        record = Keyed(key, len(self._sent), is_tombstone)
        self._sent[record.number] = record
        return record

    def acknowledged(self, record: Keyed, offset: int) -> None:
        """All in-sync replicas have the record at this offset."""
        self._found(record, offset)
        self._last[record.key] = max(offset, self._last.get(record.key, -1))

    def read(self, number: int, key: str, offset: int, *, is_tombstone: bool) -> Keyed | None:
        """A reader got this record; returns it."""
        record = self._sent.get(number)
        if record != Keyed(key, number, is_tombstone):
            self._fail(f"{number} of {key} was read at {offset}, and {record} was sent")
            return None
        self._found(record, offset)
        return record

    def wrong_batch(self, fetched: int, first: int, last: int) -> None:
        """A fetch got a batch that ends before its offset, or one that it has already got."""
        self._fail(f"a fetch at {fetched} got the batch {first} to {last}")

    def read_all(self, read: Mapping[str, tuple[int, Keyed]], end_offset: int, who: str) -> None:
        """A reader has read up to here; `read` is the last record that it got of each key, and its
        offset."""
        for key, offset in self._last.items():
            if offset >= end_offset:
                self._fail(f"{key} was acknowledged at {offset}, and the log ends at {end_offset}")
                continue
            found = read.get(key)
            if found is None and not self._at[offset].is_tombstone:
                self._fail(f"{who} has no {key}, whose last record is at {offset}")
            elif found is not None and found[0] < offset and not self._at[offset].is_tombstone:
                self._fail(f"{who} has {key} of {found[0]}, its last record is at {offset}")

    def _found(self, record: Keyed, offset: int) -> None:
        known = self._offsets.setdefault(record.number, offset)
        if known != offset:
            self._fail(f"{record.number} of {record.key} is at {known} and at {offset}")
        there = self._at.setdefault(offset, record)
        if there != record:
            self._fail(f"{offset} has {there.number} of {there.key}, and {record.number}")

    def _fail(self, what: str) -> None:
        self.anomalies.append(f"{self._name}: {what}")
