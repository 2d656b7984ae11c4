"""A replica's log in memory: records with their leader epochs, and nothing else.

A record is (leader epoch, value). The real log's `LeaderEpochs` keeps the epochs' starts in a file;
this one says the same from the same rules (KIP-101), as the list itself is at hand.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple
from uuid import UUID

NO_ID: Final = UUID(int=0)


class Value(NamedTuple):
    """What a producer sends: its number, its sequence number, and whether it asked for twins."""

    producer: int
    sequence: int
    idempotent: bool = True


class Entry(NamedTuple):
    """One record as it lies in the log; its offset is its place in the list."""

    epoch: int
    value: Value


class MemoryLog:
    """Survives the process that wrote it; gone with the disk."""

    def __init__(self, topic_id: UUID = NO_ID) -> None:
        self.topic_id = topic_id
        """As partition.metadata has it."""
        self.entries: list[Entry] = []
        self.starts: list[tuple[int, int]] = []
        """(epoch, first offset) of each epoch that a record was written in, or was led in."""

    @property
    def end_offset(self) -> int:
        """The offset behind the last record."""
        return len(self.entries)

    @property
    def last_epoch(self) -> int:
        """The last record's epoch; -1 for an empty log."""
        return self.entries[-1].epoch if self.entries else -1

    def assign(self, epoch: int, start_offset: int) -> None:
        """As `LeaderEpochs.assign`."""
        if self.starts and epoch <= self.starts[-1][0]:
            return
        while self.starts and self.starts[-1][1] >= start_offset:
            self.starts.pop()
        self.starts.append((epoch, start_offset))

    def append(self, entries: list[Entry]) -> None:
        """Adds records as they are."""
        for entry in entries:
            self.assign(entry.epoch, len(self.entries))
            self.entries.append(entry)

    def truncate_to(self, offset: int) -> int:
        """Drops what is at or behind `offset`; returns how many records that were."""
        dropped = max(0, len(self.entries) - offset)
        del self.entries[offset:]
        self.starts = [pair for pair in self.starts if pair[1] < offset]
        return dropped

    def epoch_of(self, offset: int) -> int:
        """As `LeaderEpochs.epoch_of`."""
        number = bisect_right(self.starts, offset, key=lambda pair: pair[1]) - 1
        return self.starts[number][0] if number >= 0 else -1

    def end_of(self, epoch: int) -> tuple[int, int]:
        """As `LeaderEpochs.end_of`."""
        if not self.starts or epoch < 0 or epoch > self.starts[-1][0]:
            return -1, -1
        if epoch == self.starts[-1][0]:
            return epoch, self.end_offset
        number = bisect_right(self.starts, epoch, key=lambda pair: pair[0])
        if number == 0:
            return epoch, self.starts[0][1]
        return self.starts[number - 1][0], self.starts[number][1]

    def find(self, value: Value) -> int | None:
        """The offset of an idempotent producer's value, if it is here; the latest few count."""
        first = max(0, len(self.entries) - 200)
        for offset in range(len(self.entries) - 1, first - 1, -1):
            if self.entries[offset].value == value:
                return offset
        return None

    def last_sequence(self, producer: int) -> int:
        """The sequence number that the producer wrote last; -1 for none."""
        for entry in reversed(self.entries):
            if entry.value.producer == producer:
                return entry.value.sequence
        return -1
