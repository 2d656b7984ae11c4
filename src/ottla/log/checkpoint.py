"""Kafka's checkpoint files: a version, a count, and one line per entry.

    0
    2
    flights 0 4711
    flights 1 9

A file of offsets ends with a line of the same form that names no partition, and is counted:

    #checksum 0 3023211337

It has the CRC-32C of the file's name and of the lines before it, without their line ends: one wrong
digit would move a log's start or end, and records with it. Kafka's reader takes it for a partition
that it does not have (OffsetCheckpointFile), and its next write leaves it out.

The file is written under another name and then renamed. A crash leaves the old or the new content,
and possibly a `.tmp` file, which the next write replaces.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import crc32c

from ottla.log.errors import storage_error, sync_error
from ottla.log.open_file import OpenFile

_VERSION = "0"
_CHECKSUM: Final = "#checksum"

PartitionName = tuple[str, int]


def write_lines(path: str, lines: Iterable[str]) -> None:
    """Replace the file: version, count and `lines`. Raises as `replace_file`."""
    replace_file(path, content_of(lines))


def content_of(lines: Iterable[str]) -> bytes:
    """The file's content: version, count and `lines`."""
    entries = list(lines)
    return ("\n".join((_VERSION, str(len(entries)), *entries)) + "\n").encode()


def replace_file(path: str, content: bytes, *, sync: bool = True) -> None:
    """Replace the file atomically with `content`. With `sync` the content is on the disk before
    the file has its name; `durable.sync_folder` makes the name durable, too.

    Raises ApiError KAFKA_STORAGE_ERROR; SyncError if the fsync fails.
    """
    try:
        with open(f"{path}.tmp", "wb") as file:
            file.write(content)
            if sync:
                file.flush()
                _sync(file.fileno(), path)
        os.replace(f"{path}.tmp", path)
    except OSError as error:
        raise storage_error(f"cannot write {path}", error) from None


def replace_in(folder: OpenFile, name: str, content: bytes) -> None:
    """Replace a file of the open folder durably. If the folder was renamed meanwhile, and another
    one has its name, the renamed one gets the file.

    Raises OSError; SyncError if an fsync fails.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with open(os.open(f"{name}.tmp", flags, 0o644, dir_fd=folder.fd), "wb") as file:
        file.write(content)
        file.flush()
        _sync(file.fileno(), name)
    os.replace(f"{name}.tmp", name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
    _sync(folder.fd, f"the folder of {name}")


def _sync(fd: int, what: str) -> None:
    try:
        os.fsync(fd)
    except OSError as error:
        raise sync_error(f"cannot sync {what}", error) from None


def read_lines(path: str) -> list[list[str]]:
    """The words of each entry; nothing if the file is missing.

    Raises ValueError if the file is not a checkpoint, with one line that names it, and OSError.
    """
    try:
        with open(path, "rb") as file:
            return _parse_lines(file.read())
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def _parse_lines(content: bytes) -> list[list[str]]:
    lines = content.decode("utf-8", "surrogateescape").splitlines()
    if len(lines) < 2 or lines[0] != _VERSION or not lines[1].isdecimal():
        raise ValueError(f"it is not a checkpoint file of version {_VERSION}")
    entries = [line.split() for line in lines[2:]]
    if len(entries) != int(lines[1]):
        raise ValueError(f"it states {lines[1]} entries but has {len(entries)}")
    return entries


def write_offsets(path: str, offsets: Mapping[PartitionName, int]) -> None:
    """Write one offset per partition, and the checksum."""
    lines = [f"{topic} {index} {at}" for (topic, index), at in offsets.items()]
    write_lines(path, [*lines, f"{_CHECKSUM} 0 {_checksum(os.path.basename(path), lines)}"])


class Offsets(NamedTuple):
    """What a file of offsets has."""

    by_partition: dict[PartitionName, int]
    is_proven: bool
    """It has a checksum, which is right."""


def parse_offsets(content: bytes, name: str) -> Offsets:
    """`name` is the file's. Raises ValueError, with one line, if it is not a checkpoint, or its
    checksum is wrong.
    """
    offsets: dict[PartitionName, int] = {}
    entries = _parse_lines(content)
    checksum = None
    if entries and entries[-1][:1] == [_CHECKSUM]:
        checksum = _checksum(name, (" ".join(entry) for entry in entries[:-1]))
        if entries.pop() != [_CHECKSUM, "0", str(checksum)]:
            raise ValueError("its checksum is wrong")
    for entry in entries:
        if len(entry) != 3 or not entry[1].isdecimal() or not entry[2].isdecimal():
            raise ValueError(f"it has the entry {' '.join(entry)!r}")
        offsets[entry[0], int(entry[1])] = int(entry[2])
    return Offsets(offsets, checksum is not None)


def _checksum(name: str, lines: Iterable[str]) -> int:
    return crc32c.crc32c("".join((name, *lines)).encode("utf-8", "surrogateescape"))
