"""What journeys say of the group is compared with the commits that its members have sent.

A commit takes effect at some time between its request and its answer; one without an answer then or
later, or never.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from faults.history import Committed, Event

from simulation.broker import FIRST_WALL_MS

NEVER_MS: Final = 1 << 62
NOT_BY_MEMBERS: Final = frozenset({"no_member", "outside"})
"""Doubts that are wrong here: nobody else commits."""
Document = dict[str, Any]


class Commit(NamedTuple):
    """Of one partition, in ms of the run. `ended_ms`: it has no effect after that."""

    offset: int
    sent_ms: int
    ended_ms: int
    succeeded: bool


class Asked(NamedTuple):
    """A journey, and when it was asked for, in ms of the run. `has_lost`: its partition may have
    lost committed records; `sent_ms`: when its record was sent (None: not known).
    """

    topic: str
    partition: int
    said: Document
    began_ms: int
    ended_ms: int
    has_lost: bool
    sent_ms: int | None


def commits_of(events: Iterable[Event], partition: int) -> list[Commit]:
    """All that the members sent for a partition, in the order of their answers."""
    return [
        Commit(
            offset,
            event.sent_ms,
            event.at_ms if event.error is None else NEVER_MS,
            event.error is None,
        )
        for event in events
        if isinstance(event, Committed)
        for index, offset in event.offsets
        if index == partition
    ]


class ReadsSaid:
    """What one journey says of the group, beside its commits."""

    def __init__(
        self, asked: Asked, commits: Sequence[Commit], *, has_clocks: bool, may_lose_offsets: bool
    ) -> None:
        """`has_clocks`: no clock was set; `may_lose_offsets`: of the group's own partition."""
        self.asked, self.said, self.offset = asked, asked.said, asked.said["offset"]
        self.commits = [each for each in commits if each.sent_ms <= asked.ended_ms]
        self.has_clocks = has_clocks
        self.may_lose_offsets = may_lose_offsets
        self.is_kept = not (asked.has_lost or may_lose_offsets)

    def untrue(self, group: str) -> str | None:
        """What is not true of it; None: nothing."""
        one = next((one for one in self.said["read"] if one["group"] == group), None)
        if one is None:
            known = self.said["groups"]["complete"] and self.is_kept
            return "that the group has committed nothing" if known and self._done() else None
        return self._untrue_offset(one) or self._untrue_state(one)

    def _done(self) -> list[Commit]:
        """The commits that had succeeded when the journey was asked for."""
        return [
            each for each in self.commits if each.succeeded and each.ended_ms <= self.asked.began_ms
        ]

    def _untrue_offset(self, one: Document) -> str | None:
        offset = one["committed_offset"]
        if offset is None or any(each.offset == offset for each in self.commits):
            return None
        return f"that the group's offset is {offset}, which it never committed"

    def _untrue_state(self, one: Document) -> str | None:
        state = one["state"]
        if state in ("not_yet", "missed"):
            passed = [each for each in self._done() if each.offset > self.offset]
            if self.is_kept and any(not self._may_be_back(each) for each in passed):
                return f"{state}, and the group has committed {passed[-1].offset}"
            return None
        if one["doubt"] in NOT_BY_MEMBERS:
            return f"that no member has committed: {one['doubt']}"
        # A commit that the group's own partition lost sets the group back, too.
        if state == "set_back" and not (self.may_lose_offsets or self._was_back()):
            return "that the group was set back"
        return self._untrue_time(one) if one["certain"] else None

    def _may_be_back(self, passed: Commit, before_ms: int = NEVER_MS) -> bool:
        """Whether the group may have been set back after this commit."""
        return any(
            each.offset <= self.offset
            and each.ended_ms >= passed.sent_ms
            and each.sent_ms <= before_ms
            for each in self.commits
        )

    def _was_back(self) -> bool:
        return any(self._may_be_back(each) for each in self.commits if each.offset > self.offset)

    def _untrue_time(self, one: Document) -> str | None:
        """Of a group of which a member has committed past the message for certain."""
        passed = [each for each in self.commits if each.offset > self.offset]
        if not passed:
            return "read, and no member has committed past it"
        if not self.has_clocks:
            return None
        sides = one["when"]["since_ms"], one["when"]["until_ms"]
        since_ms, until_ms = (side if side is None else side - FIRST_WALL_MS for side in sides)
        sent_ms = self.asked.sent_ms
        if until_ms is not None and sent_ms is not None and until_ms < sent_ms:
            return f"read by {until_ms}, and it was sent at {sent_ms}"
        if not any(
            (until_ms is None or each.sent_ms <= until_ms)
            and (since_ms is None or each.ended_ms >= since_ms)
            for each in passed
        ):
            return f"read between {since_ms} and {until_ms}, and no commit was then"
        if since_ms is None or not self.is_kept:
            return None
        early = [each for each in passed if each.succeeded and each.ended_ms < since_ms]
        if any(not self._may_be_back(each, since_ms) for each in early):
            return f"read from {since_ms}, and the group had committed {early[0].offset}"
        return None
