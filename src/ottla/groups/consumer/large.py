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
    # A topic may be in there more than once.
    count = len(group.subscribers) + len(subscribed)
    count += sum(len(resolved.topics) for resolved in group.regexes.values())
    weight = len(group.members) + len(group.owner_epochs) + TOPIC_WEIGHT * count
    if weight > MAX_AT_ONCE:
        return True
    weight += _partition_count(group, topics) + topics.partition_count(subscribed)
    return weight > MAX_AT_ONCE


def _partition_count(group: ConsumerGroup, topics: Topics) -> int:
    """Of the group's topics, counted once: its members may send heartbeats all at the same time."""
    known = group.partition_count
    if known is None or known[0] != topics.version:
        count = topics.partition_count(group.subscribers)
        count += sum(topics.partition_count(each.topics) for each in group.regexes.values())
        known = group.partition_count = (topics.version, count)
    return known[1]
