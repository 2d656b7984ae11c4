"""Which topic a partition's folder belongs to: `partition.metadata` (KIP-516).

    version: 0
    topic_id: <the id's 16 bytes in URL-safe base64 without padding>

A topic made again under the same name has another id, and the old one's folder is then known to be
stale.
"""

import base64
from uuid import UUID

from ottla.log.checkpoint import replace_file

FILE_NAME = "partition.metadata"


def encode_topic_id(topic_id: UUID) -> str:
    """The id as Kafka prints it."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def decode_topic_id(text: str) -> UUID:
    """The id from how Kafka prints it; raises ValueError."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def write_topic_id(folder: str, topic_id: UUID) -> None:
    """Raises ApiError KAFKA_STORAGE_ERROR."""
    content = f"version: 0\ntopic_id: {encode_topic_id(topic_id)}"
    replace_file(f"{folder}/{FILE_NAME}", content.encode(), sync=False)


def read_topic_id(folder: str) -> UUID | None:
    """The folder's topic; None where the file is missing or damaged."""
    try:
        with open(f"{folder}/{FILE_NAME}", encoding="utf-8") as file:
            words = dict(line.split(": ", 1) for line in file.read().splitlines())
        return decode_topic_id(words["topic_id"])
    except (FileNotFoundError, KeyError, ValueError):
        return None
