"""The topic that an address names."""

from __future__ import annotations

from typing import Final

from ottla.client.errors import Needs, RefusedError
from ottla.client.metadata import Topic
from ottla.console.errors import NotFoundError
from ottla.console.visit import Visit
from ottla.protocol.errors import ErrorCode
from ottla.wording.errors import unknown

MISSING: Final = (ErrorCode.unknown_topic_or_partition, ErrorCode.invalid_topic_exception)


def existing_topic(visit: Visit) -> Topic:
    """Raises NotFoundError with the nearest name, and ClientError."""
    name = str(visit.path["topic"])
    topic = visit.client.metadata([name]).topics.get(name)
    error = MISSING[0] if topic is None else topic.error
    if topic is None or error in MISSING:
        names = visit.client.metadata().topics
        raise unknown(NotFoundError, "topic", name, names, "All topics are listed under Topics.")
    if error is not ErrorCode.none and not topic.partitions:
        raise RefusedError(f"describe topic {name!r}", error, None, Needs("Describe", name))
    return topic
