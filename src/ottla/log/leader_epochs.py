"""Which leader epoch began at which offset: `leader-epoch-checkpoint` (KIP-101, KIP-279).

A checkpoint file (see there) with a line `epoch start-offset` for each epoch. Returning followers
ask where an epoch ended, and truncate what only they have. Crash: the file may lack the latest
epochs, which recovery restores from the batches. So it is written without fsync, and synced with
the log.
"""

from bisect import bisect_right
from typing import NamedTuple

from ottla.log.checkpoint import read_lines, write_lines
from ottla.protocol.errors import ApiError

FILE_NAME = "leader-epoch-checkpoint"


class EpochStart(NamedTuple):
    """An epoch, and its first offset."""

    epoch: int
    start_offset: int


class LeaderEpochs:
    """The epochs of one partition, oldest first. Reads its file on first use."""

    __slots__ = ("_entries", "is_pending", "path")

    def __init__(self, folder: str) -> None:
        self.path = f"{folder}/{FILE_NAME}"
        self._entries: list[EpochStart] | None = None
        self.is_pending = False
        """The latest epoch is not in the file yet."""

    def move_to(self, folder: str) -> None:
        """The file is now in `folder`."""
        self.path = f"{folder}/{FILE_NAME}"

    @property
    def entries(self) -> list[EpochStart]:
        if self._entries is None:
            try:
                self._entries = [
                    EpochStart(int(epoch), int(start)) for epoch, start in read_lines(self.path)
                ]
            except ValueError:
                # A damaged file counts as missing. The next epoch rewrites it.
                self._entries = []
        return self._entries

    @property
    def latest(self) -> int:
        """The latest epoch; -1 if there is none."""
        return self.entries[-1].epoch if self.entries else -1

    def begin(self, epoch: int, start_offset: int) -> None:
        """Like `assign`, for an epoch without records. `store` must be called before its first
        record. If a crash loses it before that, no response changes.
        """
        before = self.entries
        if not before or epoch > before[-1].epoch:
            self._entries = [*self._kept(start_offset), EpochStart(epoch, start_offset)]
            self.is_pending = True

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that `epoch` begins at `start_offset`, if it is newer than the latest.

        Raises ApiError KAFKA_STORAGE_ERROR. The epoch is then not recorded here either, so that the
        next call writes it.
        """
        before, was_pending = self.entries, self.is_pending
        self.begin(epoch, start_offset)
        if self.entries is before:
            return
        try:
            self.store()
        except ApiError:
            self._entries, self.is_pending = before, was_pending
            raise

    def epoch_of(self, offset: int) -> int:
        """The epoch in which `offset` was or would be written; -1 if unknown."""
        number = bisect_right(self.entries, offset, key=lambda entry: entry.start_offset) - 1
        return self.entries[number].epoch if number >= 0 else -1

    def end_of(self, epoch: int, end_offset: int) -> tuple[int, int]:
        """(largest known epoch at most `epoch`, where it ended), with `end_offset` as the log's
        end.

        (-1, -1) if unknown (KIP-320: UNDEFINED_EPOCH_OFFSET). For an epoch older than any known
        one, (epoch, first known start), like Kafka's LeaderEpochFileCache.endOffsetFor.
        """
        entries = self.entries
        if not entries or epoch < 0 or epoch > entries[-1].epoch:
            return -1, -1
        if epoch == entries[-1].epoch:
            return epoch, end_offset
        number = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
        if number == 0:
            return epoch, entries[0].start_offset
        return entries[number - 1].epoch, entries[number].start_offset

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove the epochs that begin at or after the log's new end."""
        if self.is_pending and self.entries[-1].start_offset >= end_offset:
            self._entries = self.entries[:-1]
            self.is_pending = False
        kept = self._kept(end_offset)
        if len(kept) < len(self.entries):
            self._entries = kept
            self.store()

    def truncate_from_start(self, start_offset: int) -> None:
        """Move the start of the epoch that contains the log's new start; remove those before it."""
        entries = self.entries
        number = bisect_right(entries, start_offset, key=lambda entry: entry.start_offset) - 1
        if number < 0 or (number == 0 and entries[0].start_offset == start_offset):
            return
        self._entries = [EpochStart(entries[number].epoch, start_offset), *entries[number + 1 :]]
        self.store()

    def clear(self) -> None:
        """Remove all epochs."""
        are_stored = len(self.entries) > self.is_pending
        self._entries = []
        self.is_pending = False
        if are_stored:
            self.store()

    def _kept(self, end_offset: int) -> list[EpochStart]:
        # An epoch without records has no end of its own.
        return [entry for entry in self.entries if entry.start_offset < end_offset]

    def store(self) -> None:
        """Write the file. Raises ApiError KAFKA_STORAGE_ERROR."""
        lines = (f"{entry.epoch} {entry.start_offset}" for entry in self.entries)
        write_lines(self.path, lines, sync=False)
        self.is_pending = False
