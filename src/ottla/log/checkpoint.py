"""Kafka's checkpoint files: a version, a count, and one line for each entry.

    0
    2
    flights 0 4711
    flights 1 9

Written beside the file and renamed over it: a crash leaves the old content or the new, and perhaps
a `.tmp` file that the next writing replaces.
"""

import os
from collections.abc import Iterable, Mapping

from ottla.log.errors import storage_error

_VERSION = "0"

PartitionName = tuple[str, int]


def write_lines(path: str, lines: Iterable[str], *, sync: bool = True) -> None:
    """Replaces the file by `lines` after version and count; raises ApiError KAFKA_STORAGE_ERROR."""
    entries = list(lines)
    text = "\n".join((_VERSION, str(len(entries)), *entries)) + "\n"
    replace_file(path, text.encode(), sync=sync)


def replace_file(path: str, content: bytes, *, sync: bool = True) -> None:
    """Puts `content` in the file's place at one stroke; with `sync`, so that it outlives the
    machine's power."""
    try:
        with open(f"{path}.tmp", "wb") as file:
            file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(f"{path}.tmp", path)
    except OSError as error:
        raise storage_error(f"cannot write {path}", error) from None


def read_lines(path: str) -> list[list[str]]:
    """Each entry's words; nothing where the file is missing.

    Raises ValueError where the file is no checkpoint, which its one line says.
    """
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    if len(lines) < 2 or lines[0] != _VERSION or not lines[1].isdecimal():
        raise ValueError(f"{path} is no checkpoint file of version {_VERSION}")
    entries = [line.split() for line in lines[2:]]
    if len(entries) != int(lines[1]):
        raise ValueError(f"{path} says {lines[1]} entries and has {len(entries)}")
    return entries


def write_offsets(path: str, offsets: Mapping[PartitionName, int]) -> None:
    """Writes one offset for each partition."""
    write_lines(path, (f"{topic} {index} {at}" for (topic, index), at in offsets.items()))


def read_offsets(path: str) -> dict[PartitionName, int]:
    """The offsets by partition; raises ValueError as `read_lines`."""
    try:
        return {(topic, int(index)): int(at) for topic, index, at in read_lines(path)}
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
