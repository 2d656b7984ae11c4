"""Heartbeats and JoinGroups of very large groups, decided on a copy, beside the event loop.

A new target of 100,000 partitions takes 100 ms, of 10,000 topics 250 ms. So the group is copied,
the copy decides in a thread, and what it decided is taken over if the group is still as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, NamedTuple, TypeVar

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.record_format import encode
from ottla.groups.consumer.requests import HeartbeatRequest
from ottla.groups.consumer.step import Step
from ottla.groups.consumer.topics import Topics

T = TypeVar("T")

MAX_AT_ONCE: Final = 20_000
"""Members and partitions of a group, and its topics four times: decided in about 25 ms."""
TOPIC_WEIGHT: Final = 4


class Aside(NamedTuple):
    """A group that decides elsewhere, as the shard has it now, the topics, and the step."""

    group: ConsumerGroup
    topics: Topics
    step: Step

    def copied(self) -> Copied:
        """Of the group as it is now. Only the one whose turn it is needs a copy."""
        return Copied(self.group, self.group.copied(), self.topics, self.step)


class Copied(NamedTuple):
    """A copy of a group, for another thread."""

    original: ConsumerGroup
    group: ConsumerGroup
    topics: Topics
    step: Step

    def decide(
        self, work: Callable[[ConsumerGroup, Topics, Step], T]
    ) -> tuple[T, list[tuple[bytes, bytes | None]]]:
        """The result of the decision, and the step's records encoded; raises ApiError."""
        result = work(self.group, self.topics, self.step)
        return result, [encode(record) for record in self.step.records]


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
