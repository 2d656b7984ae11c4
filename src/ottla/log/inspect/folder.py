"""A partition's folder on this machine, read only, even while a broker writes there.

Files are read with pread and never mapped: a broker may truncate or delete one at any moment, and
access to a mapping of a truncated file would kill the process. Reads files of Apache Kafka too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Final

from ottla.log.inspect.errors import InspectError
from ottla.records.header import HEADER_BYTES, BatchHeader, read_header

READ_BYTES: Final = 1024 * 1024
MAX_NAMED: Final = 5
ENTRIES_AT_A_TIME: Final = 4096


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment: its base offset, and its files."""

    base_offset: int
    log: Path

    @property
    def index(self) -> Path:
        return self.log.with_suffix(".index")

    @property
    def time_index(self) -> Path:
        return self.log.with_suffix(".timeindex")

    @property
    def size_bytes(self) -> int:
        return self.log.stat().st_size


def is_segment(path: Path) -> bool:
    return path.suffix == ".log" and len(path.stem) == 20 and path.stem.isdecimal()


def is_partition(folder: Path) -> bool:
    """Whether the folder holds segments."""
    return any(is_segment(path) for path in folder.iterdir())


def partition_folders(folder: Path) -> list[Path]:
    """The partitions inside a data folder, ordered by topic and partition."""
    found: list[tuple[str, int, Path]] = []
    for path in folder.iterdir():
        topic, dash, number = path.name.rpartition("-")
        if dash and number.isdecimal() and path.is_dir() and is_partition(path):
            found.append((topic, int(number), path))
    return [path for _, _, path in sorted(found)]


def read_partition(path: Path) -> list[Segment]:
    """The segments of a partition's folder, or the one of a `.log` file, ordered by offset.

    Raises InspectError that says what the path is instead.
    """
    try:
        if path.is_file() and is_segment(path):
            return [Segment(int(path.stem), path)]
        if path.is_file():
            raise InspectError(f"{path} is not a segment. Segments have names like {0:020d}.log.")
        segments = [Segment(int(each.stem), each) for each in path.iterdir() if is_segment(each)]
        if segments:
            return sorted(segments, key=lambda segment: segment.base_offset)
        inside = partition_folders(path)
    except FileNotFoundError:
        raise InspectError(
            f"{path} does not exist.", "A partition gets its folder with its first record."
        ) from None
    except OSError as error:
        raise InspectError(f"cannot read {path}: {error.strerror}.") from error
    if inside:
        names = ", ".join(each.name for each in inside[:MAX_NAMED])
        more = " ..." if len(inside) > MAX_NAMED else ""
        raise InspectError(
            f"{path} is a data folder; give a partition's folder.",
            f"Partitions: {names}{more}. For example: ottla log segments {inside[0]}",
        )
    raise InspectError(f"{path} holds no segments (files named like {0:020d}.log).")


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch's header, its position in the file, and whether all its bytes are there."""

    position: int
    header: BatchHeader
    whole: bool


class SegmentReader:
    """The batches of one segment file, up to the size that the file had when it was opened."""

    def __init__(self, segment: Segment) -> None:
        """Raises InspectError when the file cannot be read."""
        self.segment = segment
        self.position = 0
        try:
            self.descriptor = os.open(segment.log, os.O_RDONLY)
            self.size_bytes = os.fstat(self.descriptor).st_size
        except OSError as error:
            raise InspectError(f"cannot read {segment.log}: {error.strerror}.") from error

    def __enter__(self) -> SegmentReader:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    @property
    def left_bytes(self) -> int:
        """Bytes after the last whole batch that was returned."""
        return self.size_bytes - self.position

    def batches(self) -> Iterator[Batch]:
        """Each batch that begins in the file; the last may be incomplete.

        Raises ottla.records.errors.CorruptBatchError at the first invalid batch.
        """
        window, window_at = b"", 0
        while self.left_bytes >= HEADER_BYTES:
            start = self.position - window_at
            if len(window) - start < HEADER_BYTES:
                window_at, start = self.position, 0
                window = os.pread(self.descriptor, READ_BYTES, window_at)
                if len(window) < HEADER_BYTES:
                    # The file was truncated while we read it.
                    self.size_bytes = window_at + len(window)
                    return
            header = read_header(window, start)
            whole = header.size_bytes <= self.left_bytes
            batch = Batch(self.position, header, whole)
            if whole:
                self.position += header.size_bytes
            yield batch
            if not whole:
                return

    def read(self, batch: Batch) -> bytes:
        """All bytes of a batch."""
        return os.pread(self.descriptor, batch.header.size_bytes, batch.position)


def read_entries(path: Path, entry: Struct) -> list[tuple[int, int]]:
    """The entries of an index. A live index is padded with megabytes of zeros, which are not
    entries.
    """
    found: list[tuple[int, int]] = []
    nothing = bytes(entry.size)
    try:
        with path.open("rb") as file:
            while chunk := file.read(ENTRIES_AT_A_TIME * entry.size):
                for position in range(0, len(chunk) - entry.size + 1, entry.size):
                    if chunk[position : position + entry.size] == nothing:
                        return found
                    first, second = entry.unpack_from(chunk, position)
                    found.append((first, second))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InspectError(f"cannot read {path}: {error.strerror}.") from error
    return found
