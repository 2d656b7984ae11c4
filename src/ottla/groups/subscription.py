"""The topics in a consumer's subscription: the part that the coordinator reads.

Bytes of the consumer protocol (ConsumerProtocolSubscription.json): version int16, then topics as an
array of strings; everything after that belongs to later versions and to the assignor.
"""

from __future__ import annotations

from ottla.shards.encoding import Reader

CONSUMER_PROTOCOL_TYPE = "consumer"


def subscribed_topics(subscription: bytes) -> frozenset[str]:
    """The topics that a member subscribes to; raises ValueError for other bytes."""
    reader = Reader(subscription)
    if reader.int16() < 0:
        raise ValueError("negative version of a subscription")
    return frozenset(reader.string() for _ in range(reader.array_size()))
