"""What this client may do with topics: Metadata with the authorized operations (KIP-430)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ottla.client.admin.partitions import in_chunks
from ottla.client.client import Client
from ottla.client.metadata import METADATA, NEWEST, OLDEST
from ottla.client.question import Question
from ottla.protocol.access import OPERATIONS_OF, Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

NOT_KNOWN: Final = -(2**31)
MAX_TOPICS: Final = 1000
"""Of one request."""


def topic_permissions(
    client: Client, topics: Sequence[str]
) -> dict[str, frozenset[Operation] | None]:
    """The operations that are allowed on each topic: none, if it may not even be described; None if
    the broker does not say. Topics that do not exist are left out.
    """
    found: dict[str, frozenset[Operation] | None] = {}
    for some in in_chunks(topics, MAX_TOPICS):
        response = client.ask_any(Question(METADATA, NEWEST, _asked(some), OLDEST))
        for topic in response.topics:
            if topic.error_code is ErrorCode.topic_authorization_failed:
                found[topic.name] = frozenset()
            elif topic.error_code is not ErrorCode.unknown_topic_or_partition:
                bits = getattr(topic, "topic_authorized_operations", NOT_KNOWN)
                found[topic.name] = None if bits == NOT_KNOWN else operations_of_bits(bits)
    return found


def _asked(topics: Sequence[str]) -> Any:
    def build(messages: Messages) -> Any:
        wanted = tuple(messages.MetadataRequestTopic(name=name) for name in topics)
        return messages.MetadataRequest(
            topics=wanted,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )

    return build


def operations_of_bits(bits: int) -> frozenset[Operation]:
    """Bit N is the operation with the code N."""
    return frozenset(each for each in OPERATIONS_OF[Resource.TOPIC] if bits & 1 << each.value)
