"""The timeline files of one partition's folder: appending, bounding, deleting and reading them.

A step goes into the file of the segment that holds the last offset which it explains
(`step.last - 1`), even if that segment is not the active one, as with a slow group's commits. So
the files from the segment of offset N onwards hold everything that explains N. Some kinds are not
tied to offsets of the segment: steps of the log start move to the first remaining file, and changes
of the log as a whole (`OPENED`, truncations, changes of leader or in-sync set) go to the active
segment's. The file of a new segment begins with the current leader and in-sync set, so that it is
complete.

When a segment is removed, its file is removed too. What it says of appends, commits, deliveries and
rejected messages moves to `removed.timeline`, which has the same format and explains removed
offsets. A crash between the two leaves these steps in both; they then appear twice there, which
changes no answer.

Limits: a file larger than `cap_bytes` (`removed.timeline`: `REMOVED_CAP_BYTES`) is rewritten at
half that size (see `thinning.py`): the longer ago, the coarser the times. It is
written as `.timeline.new` and then renamed: a crash leaves the old file or the new one, and
possibly a `.new` file, which the next clean-up removes. Call all of this from one thread at a time,
never from the event loop.
"""

import os
import re
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

from ottla.timelines.file_format import (
    HEAD,
    STEP_BYTES,
    SUFFIX,
    decode,
    encode,
    last_steps,
    sound_bytes,
)
from ottla.timelines.pending_steps import clock_set_back
from ottla.timelines.step import Kind, Step
from ottla.timelines.thinning import thin

CAP_BYTES: Final = 512 * 1024
"""0.05 % of a segment of Kafka's default size; a quarter of an hour of steady load at
full detail. With more, rewrites and lookups would take noticeable time.
"""
REMOVED_CAP_BYTES: Final = 32 * 1024
"""About a thousand steps for all removed offsets of a partition."""
MAX_STARTS_CARRIED: Final = 256
MAX_FILES_READ: Final = 32
"""The offset's own segment and those after it, which can contain its steps."""
GROUPS_FOLDER: Final = "timelines"
_GROUPS_NAME: Final = re.compile(r"[0-9a-f]{32}-\d+$")
_NEW: Final = SUFFIX + ".new"
_REMOVED: Final = -1
"""In place of a base offset: the file of removed offsets."""
_REMOVED_STEM: Final = "removed"
_KEPT_REMOVED: Final = frozenset(
    {
        *(Kind.CLOCK, Kind.OPENED, Kind.END, Kind.HIGH, Kind.END_AND_HIGH),
        *(Kind.GROUP, Kind.SET_BACK, Kind.FORGOTTEN, Kind.DELIVERED, Kind.REJECTED),
    }
)
_REACHED: Final = frozenset(
    {
        *(Kind.END, Kind.HIGH, Kind.END_AND_HIGH),
        *(Kind.GROUP, Kind.DELIVERED, Kind.REPLICA),
    }
)
"""What says that the log had all below `last`."""
_OF_THE_LOG: Final = (*(Kind.OPENED, Kind.IN_SYNC, Kind.CUT, Kind.DIVERGED, Kind.CLOCK),)


class TimelineFolder:
    """One partition's timeline files. `bases` are the base offsets of the log's current segments,
    ascending.
    """

    def __init__(self, path: Path, *, cap_bytes: int = CAP_BYTES) -> None:
        self.path = path
        self.is_gone = False
        """The partition was deleted. A new one with the same name has its own folder object."""
        self.cap_bytes = cap_bytes
        self._sizes: dict[int, int] = {}
        """Sizes of the files that were checked for a torn end."""
        self._bases: tuple[int, ...] = ()
        self._in_sync: Step | None = None
        """The last that was written."""
        self._has_written = False

    def write(self, steps: Sequence[Step], bases: Sequence[int]) -> None:
        """Append the steps to their files; clean up if segments were added or removed.

        Raises OSError if the disk refuses; the steps are then lost. A missing folder is not an
        error: the topic was deleted in the meantime.
        """
        if not bases or self.is_gone or not self.path.is_dir():
            return
        by_base: dict[int, list[Step]] = {}
        if steps and not self._has_written:
            self._has_written = True
            # The clock may have been set back while the broker was stopped.
            files = self._files()
            last = last_steps(self._data(files[-1])) if files else ()
            latest_ms = max((step.until_ms for step in last), default=0)
            first_ms = min(step.since_ms for step in steps)
            if first_ms < latest_ms:
                steps = [*clock_set_back(first_ms, latest_ms), *steps]
        if tuple(bases) != self._bases:
            self._follow(bases)
            if self._bases and self._in_sync is not None:
                rolled = (base for base in bases if base > self._bases[-1])
                by_base = {base: [self._in_sync] for base in rolled}
            self._bases = tuple(bases)
        for step in steps:
            if step.kind is Kind.IN_SYNC:
                self._in_sync = step
            base = _home(step, bases)
            if base != _REMOVED or step.kind in _KEPT_REMOVED:
                by_base.setdefault(base, []).append(step)
        for base, some in by_base.items():
            self._append(base, some)

    def read(self, offset: int) -> list[Step]:
        """The steps in the files from this offset's segment on, oldest file first, each in the
        order written.

        Reads at most `MAX_FILES_READ` files, and the one before them (it may have a group's earlier
        position).
        """
        bases = self._files()
        first = max(bisect_right(bases, offset) - 1, 0)
        is_removed = not bases or offset < bases[0]
        steps = decode(self._data(_REMOVED)) if is_removed else []
        for base in bases[max(first - 1, 0) : first + MAX_FILES_READ]:
            steps += decode(self._data(base))
        return steps

    def record_truncation(self, now_ms: int, end_offset: int, bases: Sequence[int]) -> None:
        """After a crash: if the log ends before the end of the timelines, record that first.

        Otherwise the steps of lost records would explain the records that replace them. A group or
        a pipeline may have passed records whose append is not recorded. Raises OSError like
        `write`.
        """
        if any(step.last > end_offset for step in self.read(end_offset) if step.kind in _REACHED):
            opened = Step(Kind.OPENED, None, now_ms, now_ms, end_offset, end_offset, end_offset)
            self.write([opened], bases)
            with open(self._file(bases[-1]), "rb") as file:
                os.fsync(file.fileno())

    def size_bytes(self) -> int:
        """The size of all timelines of this partition on disk."""
        files = self.path.glob(f"*{SUFFIX}")
        return sum(file.stat().st_size for file in files)

    def _append(self, base: int, steps: Sequence[Step]) -> None:
        size = self._sizes.get(base)
        if size is None:
            size = self._mend(base)
        block = encode(steps)
        try:
            with open(self._file(base), "ab", buffering=0) as file:
                size = file.tell()
                if size == 0:  # a new file, also if somebody has deleted the one before
                    block = HEAD + block
                written = file.write(block)
                if written != len(block):
                    self._sizes.pop(base, None)
                    raise OSError(f"{file.name}: only {written} of {len(block)} bytes were written")
        except OSError:
            self._sizes.pop(base, None)
            if self.path.is_dir() and not self.is_gone:
                raise
            return
        self._sizes[base] = size + len(block)
        cap_bytes = REMOVED_CAP_BYTES if base == _REMOVED else self.cap_bytes
        if self._sizes[base] > cap_bytes:
            self._rewrite(base, decode(self._data(base)), cap_bytes // 2)

    def _mend(self, base: int) -> int:
        """Truncate what a crash left torn; returns the file's size, 0 if there is none (or it was
        not ours).
        """
        data = self._data(base)
        sound = sound_bytes(data)
        if sound < len(data):
            os.truncate(self._file(base), sound)
        return sound

    def _rewrite(self, base: int, steps: Sequence[Step], max_bytes: int) -> None:
        # Names and block heads need space besides the steps, so try, check and try a lower number.
        most = max(max_bytes // STEP_BYTES, 1)
        data = HEAD + encode(thin(steps, most))
        while len(data) > max_bytes and most > 1:
            most = max(most * max_bytes // len(data) * 9 // 10, 1)
            data = HEAD + encode(thin(steps, most))
        file = self._file(base)
        new = file.with_name(file.stem + _NEW)
        new.write_bytes(data)
        new.replace(file)
        self._sizes[base] = len(data)

    def _follow(self, bases: Sequence[int]) -> None:
        """Match the files to the current segments: those of removed segments move to the file of
        removed offsets, those of compacted ones to the file before.
        """
        for left in self.path.glob(f"*{_NEW}"):
            left.unlink(missing_ok=True)
        starts: list[Step] = []
        for base in self._files():
            if base in bases:
                continue
            steps = decode(self._data(base))
            if base < bases[0]:
                starts += [step for step in steps if step.kind is Kind.START]
                kept = [step for step in steps if step.kind in _KEPT_REMOVED]
                if kept:
                    self._append(_REMOVED, kept)
            elif steps:
                self._append(bases[bisect_right(bases, base) - 1], steps)
            self._file(base).unlink(missing_ok=True)
            self._sizes.pop(base, None)
        if starts:
            self._append(bases[0], starts[-MAX_STARTS_CARRIED:])

    def _files(self) -> list[int]:
        """Base offsets of the timeline files, ascending."""
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return []
        stems = (name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))
        return sorted(int(stem) for stem in stems if len(stem) == 20 and stem.isdecimal())

    def _file(self, base: int) -> Path:
        stem = _REMOVED_STEM if base == _REMOVED else f"{base:020}"
        return self.path / f"{stem}{SUFFIX}"

    def _data(self, base: int) -> bytes:
        try:
            return self._file(base).read_bytes()
        except FileNotFoundError:
            return b""


class GroupFolder(TimelineFolder):
    """The groups' steps of a partition whose replicas other brokers have: one file, in a folder of
    the partition of `__consumer_offsets` that has the groups.
    """

    def write(self, steps: Sequence[Step], bases: Sequence[int]) -> None:
        """As above. The folder is made, unless that of the groups is gone."""
        try:
            self.path.parent.mkdir(exist_ok=True)
            self.path.mkdir(exist_ok=True)
        except FileNotFoundError:
            return
        super().write(steps, bases)


def groups_path(offsets_folder: str, topic_id: UUID, partition: int) -> Path:
    """Where the groups' steps of a partition stand, in the folder of a partition of
    `__consumer_offsets`. A topic that is deleted and made again has another id.
    """
    return Path(offsets_folder) / GROUPS_FOLDER / f"{topic_id.hex}-{partition}"


def groups_paths(offsets_folder: Path) -> list[Path]:
    """The folders of all partitions there."""
    try:
        names = os.listdir(offsets_folder / GROUPS_FOLDER)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [offsets_folder / GROUPS_FOLDER / name for name in names if _GROUPS_NAME.match(name)]


def topic_of_groups(path: Path) -> UUID:
    """The topic of such a folder."""
    return UUID(path.name.partition("-")[0])


def _home(step: Step, bases: Sequence[int]) -> int:
    """The base offset of the file that a step belongs to; `_REMOVED` if all that it explains is
    deleted.
    """
    if step.kind in _OF_THE_LOG:
        return bases[-1]
    if step.kind is Kind.START:
        return bases[max(bisect_right(bases, step.last) - 1, 0)]
    index = bisect_right(bases, step.last - 1) - 1
    return bases[index] if index >= 0 else _REMOVED
