"""The metadata of a group's commit, as confluent-kafka gives it.

It takes a text to end at the next zero byte. librdkafka copies what the brokers have, with no zero
byte of its own, so that only a text that confluent-kafka committed, with the one at the end of its
C string, ends where it should. Behind that of another client (Java's, a tool that copies groups)
follow bytes of the heap. They may be no UTF-8, and the attribute is decoded when it is read.

So a text has to say itself where it ends, as JSON does.
"""

from __future__ import annotations

import json
from typing import Any


def metadata_of(commit: Any) -> str:
    """Return the metadata of a commit (a TopicPartition); what follows it means nothing."""
    try:
        text: str | None = commit.metadata
    except UnicodeDecodeError as error:
        text = error.object.decode(errors="replace")
    return (text or "").rstrip("\0")


def read_document(metadata: str) -> dict[str, Any] | None:
    """Return the JSON object that a metadata begins with, None where there is none."""
    try:
        document, _ = json.JSONDecoder().raw_decode(metadata)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
