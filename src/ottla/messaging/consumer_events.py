"""What the events of a consumer say that are no records: that a partition ends, or why reading
does.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError

from ottla.client.errors import Needs, RefusedError
from ottla.messaging.librdkafka import LibrdkafkaError, explain
from ottla.protocol.errors import ErrorCode


def is_end(event: Any, group: str | None = None) -> bool:
    """Whether the event, which has an error, says that its partition has no more records for now.
    If not, it says nothing about the reading. `group`: the one that the consumer has joined.

    Raises RefusedError for lack of a permission, and LibrdkafkaError for whatever else ends the
    reading.
    """
    error = event.error()
    code = error.code()
    if code == KafkaError._PARTITION_EOF:
        return True
    if code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION):
        raise LibrdkafkaError(f"topic {event.topic()!r} was deleted.")
    if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        needs = Needs("Read", event.topic())
        raise RefusedError("continue to read", ErrorCode(code), None, needs)
    if code == KafkaError.GROUP_AUTHORIZATION_FAILED:
        if group is None:
            return False  # librdkafka asks for a coordinator that nobody needs
        raise RefusedError("join the group", ErrorCode(code), None, Needs("Read", group))
    raise LibrdkafkaError(f"cannot continue to read: {explain(error)}")
