"""The folder of a partition that belongs to no topic here as far as the broker knows, and is kept.

    <topic>-<partition>.<32 hex digits>-stray/     all files of the partition, unchanged, and
        stray.json      {"version": 1, "topic": "flights", "partition": 0, "why": "...",
                         "at_ms": 1795259274884, "log_start_offset": 0}

The name is Kafka's (LocalLog.logStrayDirName). The note is ours: a long topic name is cut in the
folder's name, and the log's start is otherwise only in a checkpoint file, which forgets it. It is
written before the folder is renamed. Crash between the two: the note is in a partition's folder,
where nothing reads it, and the next start decides again. Without the note, or if it is damaged, the
folder's name and its time of change are used; so strays of Apache Kafka are read as well.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from random import SystemRandom
from typing import Final
from uuid import UUID

from ottla.log import names
from ottla.log.checkpoint import replace_file
from ottla.log.errors import storage_error
from ottla.log.partition_metadata import read_topic_id
from ottla.protocol.kafka_uuid import random_uuid

NOTE: Final = "stray.json"


@dataclass(frozen=True, slots=True)
class StrayFolder:
    """One stray folder. `why` and `log_start_offset` are None without a note."""

    path: str
    topic: str
    partition: int
    topic_id: UUID | None
    why: str | None
    at_ms: int
    log_start_offset: int | None


@dataclass(frozen=True, slots=True)
class StoredLog:
    """The log in a stray folder. `latest_epoch` is -1 if it has no record."""

    start_offset: int
    end_offset: int
    latest_epoch: int


def write_note(
    folder: str, topic: str, partition: int, *, why: str, at_ms: int, log_start_offset: int
) -> None:
    """Writes the note into a partition's folder. Raises ApiError KAFKA_STORAGE_ERROR."""
    content = {
        "version": 1,
        "topic": topic,
        "partition": partition,
        "why": why,
        "at_ms": at_ms,
        "log_start_offset": log_start_offset,
    }
    # Without fsync, because the event loop calls it: a note torn by a power failure is not used.
    replace_file(f"{folder}/{NOTE}", json.dumps(content).encode(), sync=False)


def read_stray(path: str) -> StrayFolder | None:
    """The stray folder at that path; None if its name is not one's. Raises OSError."""
    named = names.stray_partition_of(os.path.basename(path))
    if named is None:
        return None
    topic_id = read_topic_id(path)
    with suppress(OSError, ValueError, KeyError, TypeError):
        with open(f"{path}/{NOTE}", encoding="utf-8") as file:
            note = json.load(file)
        if str(note["topic"]).startswith(named[0]) and int(note["partition"]) == named[1]:
            return StrayFolder(
                path,
                str(note["topic"]),
                named[1],
                topic_id,
                str(note["why"]),
                int(note["at_ms"]),
                int(note["log_start_offset"]),
            )
    changed_ms = int(os.stat(path).st_ctime * 1000)
    return StrayFolder(path, *named, topic_id, None, changed_ms, None)


def stray_folders(root: str) -> Iterator[StrayFolder]:
    """The stray folders in a data folder, by name. Raises OSError."""
    for name in sorted(os.listdir(root)):
        if name.endswith(names.STRAY_FOLDER) and os.path.isdir(f"{root}/{name}"):
            found = read_stray(f"{root}/{name}")
            if found is not None:
                yield found


def delete_stray(stray: StrayFolder) -> None:
    """Deletes the folder with all records. Raises OSError.

    It is renamed first: if this is interrupted, the broker's next start deletes the rest.
    """
    root = os.path.dirname(stray.path) or "."
    unique = random_uuid(SystemRandom())
    renamed = f"{root}/{names.deleted_folder_name(stray.topic, stray.partition, unique)}"
    os.rename(stray.path, renamed)
    shutil.rmtree(renamed)


def folder_bytes(path: str) -> int:
    """The size of the files in a folder. Files that disappear meanwhile count as nothing."""
    total = 0
    with suppress(FileNotFoundError), os.scandir(path) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                total += entry.stat(follow_symlinks=False).st_size
    return total


def rename(folder: str, renamed: str) -> bool:
    """Renames a partition's folder; False if it does not exist, because it never had a record.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    try:
        os.rename(folder, renamed)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error(f"cannot rename {folder}", error) from None
    return True
