"""Decisions about very large share groups, made on a copy of the group, beside the event loop.

A new target of 100,000 partitions takes half a second. So, as with consumer groups
(`ottla.groups.consumer.aside`), the group is copied, the copy decides in a thread, and what it
decided is taken over if the group is still as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from ottla.groups.consumer.topics import Topics
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.record_format import encode
from ottla.groups.share.requests import HeartbeatRequest
from ottla.groups.share.step import Step

T = TypeVar("T")

MAX_AT_ONCE: Final = 4_000
"""Members, partitions that have or need state, and topics four times: decided in about 25 ms."""
TOPIC_WEIGHT: Final = 4


class Aside(NamedTuple):
    """A group that decides elsewhere, as the shard has it now, the topics, and the step."""

    group: ShareGroup
    topics: Topics
    step: Step

    def copied(self) -> Copied:
        """Of the group as it is now. Only the one whose turn it is needs a copy."""
        return Copied(self.group, self.group.copied(), self.topics, self.step)


class Copied(NamedTuple):
    """A copy of a group, for another thread."""

    original: ShareGroup
    group: ShareGroup
    topics: Topics
    step: Step

    def decide(
        self, work: Callable[[ShareGroup, Topics, Step], T]
    ) -> tuple[T, list[tuple[bytes, bytes | None]]]:
        """The result of the decision, and the step's records encoded; raises ApiError."""
        result = work(self.group, self.topics, self.step)
        return result, [encode(record) for record in self.step.records]


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
    weight = len(group.members) + TOPIC_WEIGHT * sum(map(len, names)) + state_weight(group)
    if weight > MAX_AT_ONCE:
        return True
    for some in names:
        weight += sum(topics.partition_counts(some).values())
    return weight > MAX_AT_ONCE


def state_weight(group: ShareGroup) -> int:
    """How many partitions have state, or are about to."""
    states = group.states
    return sum(
        len(topic.partitions)
        for topics in (states.initializing, states.initialized)
        for topic in topics.values()
    )
