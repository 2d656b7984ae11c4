"""Which topic a partition's folder belongs to: `partition.metadata` (KIP-516).

    version: 0
    topic_id: <the id's 16 bytes in URL-safe base64 without padding>

A topic recreated under the same name has another id, so the old one's folder is recognised as
stale. Crash: the file is replaced in one step, and synced with the first records. So it may be
missing or empty only while no record of the folder is durable; any topic may then take the folder.
"""

import os
from contextlib import suppress
from uuid import UUID

from ottla.log.checkpoint import replace_file
from ottla.log.errors import storage_error
from ottla.protocol.kafka_uuid import uuid_from_text, uuid_text
from ottla.runtime.durable import sync_folder

FILE_NAME = "partition.metadata"


def make_folder(folder: str, topic_id: UUID | None, *, sync: bool = False) -> tuple[str, ...]:
    """Create the folder if it is missing, with its topic id if that is known. Returns what must be
    synced before the folder's records count as durable. With `sync` the id is durable at once: the
    folder has records.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    path = f"{folder}/{FILE_NAME}"
    try:
        # Not the folders above it: a data folder that was deleted must not come back.
        with suppress(FileExistsError):
            os.mkdir(folder)
    except OSError as error:
        raise storage_error(f"cannot create {folder}", error) from None
    if topic_id is not None:
        content = f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()
        replace_file(path, content, sync=sync)
        if sync:
            sync_folder(folder)
    return path, folder, os.path.dirname(folder)


def read_topic_id(folder: str) -> UUID | None:
    """The folder's topic; None if the file is missing or damaged."""
    try:
        with open(f"{folder}/{FILE_NAME}", encoding="utf-8") as file:
            words = dict(line.split(": ", 1) for line in file.read().splitlines())
        return uuid_from_text(words["topic_id"])
    except (FileNotFoundError, KeyError, ValueError):
        return None
