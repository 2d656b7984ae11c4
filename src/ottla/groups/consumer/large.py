"""Which consumer groups are so large that a thread decides (`ottla.groups.aside`).

A new target of 100,000 partitions takes 100 ms, of 10,000 topics 250 ms.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.requests import HeartbeatRequest
from ottla.groups.consumer.topics import Topics

MAX_AT_ONCE: Final = 20_000
"""Members and partitions of a group, and its topics four times: decided in about 25 ms."""
TOPIC_WEIGHT: Final = 4


def is_large(group: ConsumerGroup, request: HeartbeatRequest, topics: Topics) -> bool:
    """Whether this heartbeat may take longer than the event loop should be held."""
    says_nothing = request.subscribed_topics is None and request.subscribed_regex is None
    if says_nothing and group.checked_version == topics.version:
        member = group.members.get(request.member_id)
        target_epoch = group.target_epoch
        if (
            member is not None
            and group.epoch == target_epoch
            and member.is_reconciled_to(target_epoch)
        ):
            return False
    return is_heavy(group, request.subscribed_topics or (), topics)


def is_heavy(group: ConsumerGroup, subscribed: Collection[str], topics: Topics) -> bool:
    """Whether a new target may take that long, with a member that subscribes to these."""
    weight = len(group.members) + len(group.owner_epochs)
    names = _names(group, subscribed)
    weight += TOPIC_WEIGHT * sum(map(len, names))
    if weight > MAX_AT_ONCE:
        return True
    for some in names:
        weight += sum(topics.partition_counts(some).values())
    return weight > MAX_AT_ONCE


def _names(group: ConsumerGroup, subscribed: Collection[str]) -> list[Collection[str]]:
    """All topics that the group subscribes to; some may be in there more than once."""
    return [
        group.subscribers,
        subscribed,
        *(resolved.topics for resolved in group.regexes.values()),
    ]
