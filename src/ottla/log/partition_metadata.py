"""Which topic a partition's folder belongs to: `partition.metadata` (KIP-516).

    version: 0
    topic_id: <the id's 16 bytes in URL-safe base64 without padding>

A topic made again under the same name has another id, and the old one's folder is then known to be
stale. Crash: the file may be missing or torn, while the folder has no record yet: any topic may
take that.
"""

import base64
import os
from uuid import UUID

from ottla.log.errors import storage_error

FILE_NAME = "partition.metadata"


def encode_topic_id(topic_id: UUID) -> str:
    """The id as Kafka prints it."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def decode_topic_id(text: str) -> UUID:
    """The id from how Kafka prints it; raises ValueError."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def make_folder(folder: str, topic_id: UUID | None) -> None:
    """Makes the folder, unless it is there, and says in it whose it is, where that is known.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    try:
        os.makedirs(folder, exist_ok=True)
        if topic_id is not None:
            with open(f"{folder}/{FILE_NAME}", "wb", buffering=0) as file:
                file.write(f"version: 0\ntopic_id: {encode_topic_id(topic_id)}".encode())
    except OSError as error:
        raise storage_error(f"cannot create {folder}", error) from None


def read_topic_id(folder: str) -> UUID | None:
    """The folder's topic; None where the file is missing or damaged."""
    try:
        with open(f"{folder}/{FILE_NAME}", encoding="utf-8") as file:
            words = dict(line.split(": ", 1) for line in file.read().splitlines())
        return decode_topic_id(words["topic_id"])
    except (FileNotFoundError, KeyError, ValueError):
        return None
