"""Which leader epoch began at which offset: `leader-epoch-checkpoint` (KIP-101, KIP-279).

A checkpoint file (see there) with a line `epoch start-offset` for each epoch. Returning followers
ask where an epoch ended, and truncate what only they have.

The file is written with each flush, in its thread: synced, and then renamed. (Kafka writes it at
each change, in the thread of the request, and syncs it there.) Crash: it has the epochs of all
records below the recovery point. It may lack later ones, and have some that a truncation removed:
recovery compares it with the batches.
"""

from __future__ import annotations

import logging
import os
from bisect import bisect_right
from itertools import pairwise
from typing import Final, NamedTuple

import crc32c

from ottla.log.checkpoint import content_of, read_lines, replace_in
from ottla.log.errors import storage_error
from ottla.log.open_file import OpenFile
from ottla.log.set_aside import make_way

logger = logging.getLogger("ottla.recovery")

FILE_NAME = "leader-epoch-checkpoint"


LARGEST_OFFSET: Final = 2**63 - 1


class EpochStart(NamedTuple):
    """An epoch, and its first offset."""

    epoch: int
    start_offset: int


class LeaderEpochs:
    """The epochs of one partition, oldest first. Reads its file on first use."""

    __slots__ = ("_changes", "_entries", "_written", "is_pending", "path")

    def __init__(self, folder: str) -> None:
        self.path = f"{folder}/{FILE_NAME}"
        self._entries: list[EpochStart] | None = None
        self.is_pending = False
        """The latest epoch has no record yet: it does not belong into the file."""
        self._changes = 0
        """How often what belongs into the file has changed."""
        self._written = 0
        """How many of the changes are in the file."""

    def move_to(self, folder: str) -> None:
        """The file is now in `folder`."""
        self.path = f"{folder}/{FILE_NAME}"

    @property
    def entries(self) -> list[EpochStart]:
        if self._entries is None:
            self.read()
        assert self._entries is not None
        return self._entries

    def read(self, checksum: int | None = None) -> bool:
        """Read the file; a missing one has no epochs. Returns whether it is sound, and has the
        `checksum` if one is given. There are no epochs then; see `replace`.
        """
        try:
            entries = [EpochStart(int(epoch), int(start)) for epoch, start in read_lines(self.path)]
            if any(
                after.epoch <= before.epoch or after.start_offset < before.start_offset
                for before, after in pairwise(entries)
            ):
                raise ValueError("its epochs are not in order")
            if checksum not in (None, _checksum(entries)):
                raise ValueError("it is not as the last stop has written it")
        except (ValueError, OSError) as error:
            # It must not keep the next write from its name.
            make_way(self.path)
            logger.warning(
                "%s is damaged (%s): the leader epochs are those of the batches", self.path, error
            )
            self._entries = []
            return False
        self._entries = entries
        return True

    def replace(self, entries: list[EpochStart]) -> None:
        """These are the epochs, whatever the file has."""
        self._entries = entries
        self.is_pending = False
        self._changes += 1

    @property
    def checksum(self) -> int:
        """Of what belongs into the file."""
        return _checksum(self.entries[:-1] if self.is_pending else self.entries)

    @property
    def latest(self) -> int:
        """The latest epoch; -1 if there is none."""
        entries = self._entries if self._entries is not None else self.entries
        return entries[-1].epoch if entries else -1

    @property
    def is_dirty(self) -> bool:
        """The file is not what it should be."""
        return self._written < self._changes

    def begin(self, epoch: int, start_offset: int) -> None:
        """Like `assign`, for an epoch without records. `confirm` must be called with its first one.
        If a crash loses it before that, no response changes.
        """
        before = self.entries
        if not before or epoch > before[-1].epoch:
            self._entries = [*self._kept(start_offset), EpochStart(epoch, start_offset)]
            self.is_pending = True

    def confirm(self) -> None:
        """The epoch that has begun has a record."""
        if self.is_pending:
            self.is_pending = False
            self._changes += 1

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that `epoch` begins at `start_offset`, if it is newer than the latest."""
        self.begin(epoch, start_offset)
        self.confirm()

    def restore(self, epoch: int, offset: int) -> int:
        """Recovery has found a batch of this epoch. If the file says something else of the offset,
        it lacks the epoch, or a truncation has removed what it says of this and later offsets.

        Returns where the next epoch begins: up to there batches of this one say nothing else.
        """
        if epoch >= 0 and self.epoch_of(offset) != epoch:
            kept = [each for each in self._kept(offset) if each.epoch <= epoch]
            if not kept or kept[-1].epoch < epoch:
                kept.append(EpochStart(epoch, offset))
            self._entries = kept
            self._changes += 1
        later = (each.start_offset for each in self.entries if each.start_offset > offset)
        return next(later, LARGEST_OFFSET)

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
            self._changes += 1

    def truncate_from_start(self, start_offset: int) -> None:
        """Move the start of the epoch that contains the log's new start; remove those before it."""
        entries = self.entries
        number = bisect_right(entries, start_offset, key=lambda entry: entry.start_offset) - 1
        if number < 0 or (number == 0 and entries[0].start_offset == start_offset):
            return
        self._entries = [EpochStart(entries[number].epoch, start_offset), *entries[number + 1 :]]
        self._changes += 1

    def clear(self) -> None:
        """Remove all epochs."""
        if len(self.entries) > self.is_pending:
            self._changes += 1
        self._entries = []
        self.is_pending = False

    def _kept(self, end_offset: int) -> list[EpochStart]:
        # An epoch without records has no end of its own.
        return [entry for entry in self.entries if entry.start_offset < end_offset]

    def write(self) -> EpochsWrite | None:
        """What a worker thread must do so that the file has the epochs of now; None if it has them.

        Raises ApiError KAFKA_STORAGE_ERROR.
        """
        return EpochsWrite(self, self._changes) if self.is_dirty else None

    def has_written(self, changes: int) -> bool:
        """Whether the file has so many of the changes."""
        return self._written >= changes

    def was_written(self, changes: int) -> None:
        """The file has so many of the changes."""
        self._written = changes


def _checksum(entries: list[EpochStart]) -> int:
    return crc32c.crc32c(" ".join(f"{each.epoch} {each.start_offset}" for each in entries).encode())


class EpochsWrite:
    """One write of the file, as of now. `run()` it in a worker thread, one at a time."""

    def __init__(self, epochs: LeaderEpochs, changes: int) -> None:
        self._epochs = epochs
        self._changes = changes
        entries = epochs.entries[:-1] if epochs.is_pending else epochs.entries
        self._content = content_of(f"{each.epoch} {each.start_offset}" for each in entries)
        folder = os.path.dirname(epochs.path)
        try:
            self._folder = OpenFile(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise storage_error(f"cannot open {folder}", error) from None

    def run(self) -> None:
        """Does nothing if a later write came first. Raises OSError and SyncError."""
        if not self._epochs.has_written(self._changes):
            replace_in(self._folder, FILE_NAME, self._content)
            self._epochs.was_written(self._changes)
