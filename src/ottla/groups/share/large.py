"""Which share groups are so large that a thread decides (`ottla.groups.aside`).

A new target of 100,000 partitions takes half a second.
"""

from __future__ import annotations

from typing import Final

from ottla.groups.consumer.topics import Topics
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.requests import HeartbeatRequest

MAX_AT_ONCE: Final = 4_000
"""Members, partitions that have or need state, and topics four times: decided in about 25 ms."""
TOPIC_WEIGHT: Final = 4


def is_large(group: ShareGroup, request: HeartbeatRequest, topics: Topics) -> bool:
    """Whether this heartbeat may take longer than the event loop should be held."""
    member = group.members.get(request.member_id)
    if (
        request.subscribed_topics is None
        and group.checked_version == group.initialized_version == topics.version
        and member is not None
        and group.epoch == group.target_epoch
        and member.is_reconciled_to(group.target_epoch)
    ):
        return False
    names = (group.subscribers, request.subscribed_topics or ())
    weight = len(group.members) + TOPIC_WEIGHT * sum(map(len, names)) + state_weight(group, topics)
    if weight > MAX_AT_ONCE:
        return True
    for some in names:
        weight += sum(topics.partition_counts(some).values())
    return weight > MAX_AT_ONCE


def state_weight(group: ShareGroup, topics: Topics) -> int:
    """How many partitions have state, are about to, or are about to have none any more."""
    states = group.states
    weight = sum(
        len(topic.partitions)
        for known in (states.initializing, states.initialized)
        for topic in known.values()
    )
    if states.deleting:
        weight += sum(topics.partition_counts(states.deleting.values()).values())
    return weight
