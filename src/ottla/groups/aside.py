"""Decisions about very large groups, made on a copy of the group, beside the event loop.

A new target of 100,000 partitions takes 100 ms and more. So the group is copied, the copy decides
in a thread, and what it decided is taken over if the group is still as it was. What is very large,
`large` of `ottla.groups.consumer`, `share` and `streams` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from ottla.groups.consumer.topics import Topics
from ottla.groups.records import Record, encode


class Group(Protocol):
    """A consumer group, a share group or a streams group."""

    group_id: str
    revision: int
    """Grows with each record."""

    def copied(self) -> Self:
        """The group as it is now."""


class Decided(Protocol):
    """A step."""

    @property
    def records(self) -> Sequence[Record]: ...


G = TypeVar("G", bound=Group)
S = TypeVar("S", bound=Decided)
T = TypeVar("T")


class Aside(NamedTuple, Generic[G, S]):
    """A group that decides elsewhere, as the shard has it now, the topics, and the step."""

    group: G
    topics: Topics
    step: S

    def copied(self) -> Copied[G, S]:
        """Of the group as it is now. Only the one whose turn it is needs a copy."""
        return Copied(self.group, self.group.copied(), self.topics, self.step)


class Copied(NamedTuple, Generic[G, S]):
    """A copy of a group, for another thread."""

    original: G
    group: G
    topics: Topics
    step: S

    def decide(
        self, work: Callable[[G, Topics, S], T]
    ) -> tuple[T, list[tuple[bytes, bytes | None]]]:
        """The result of the decision, and the step's records encoded; raises ApiError."""
        result = work(self.group, self.topics, self.step)
        return result, [encode(record) for record in self.step.records]


def is_unchanged(copied: Copied[G, Any], groups: Mapping[str, G]) -> bool:
    """Whether the group, among these, is still as it was copied.

    One that was removed and made again, or loaded again, may have had as many records.
    """
    original = copied.original
    group = groups.get(original.group_id)
    is_same = group is original or (group is None and not original.revision)
    return is_same and original.revision == copied.group.revision
