"""How many partitions each subscriber of a topic has, and who is next to get or give one.

The members are sorted by their load. Those with the least form a range at the left end, those with
the most one at the right end; each range moves one level at a time and takes in the members that it
meets, so that choosing the next member costs nothing. Kafka's counterpart is the
MemberAssignmentBalancer of UniformHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Sequence


class Load:
    """The balance between the subscribers of one topic.

    `sizes` has how many partitions each member has, of all topics, by its index. It is read when a
    range grows, and the ranges take for granted that what was chosen is also done.
    """

    def __init__(self, members: Sequence[int], sizes: list[int]) -> None:
        assert members, "a topic without subscribers is not balanced"
        self._sizes = sizes
        self._members = sorted(members, key=lambda member: (sizes[member], member))
        self._least_end = 0
        self._least_level = sizes[self._members[0]] - 1
        self._next_least = 0
        self._most_start = len(self._members)
        self._most_end = len(self._members)
        self._most_level = sizes[self._members[-1]] + 1
        self._next_most = len(self._members) - 1

    @property
    def imbalance(self) -> int:
        """The difference between the most and the least that a member had at the beginning."""
        return self._sizes[self._members[-1]] - self._sizes[self._members[0]]

    @property
    def is_balanced(self) -> bool:
        """The two ranges differ by one partition at most."""
        return self._most_level - self._least_level <= 1

    def next_least(self) -> int:
        """The member that gets the next partition."""
        if self._next_least >= self._least_end:
            self._least_level += 1
            while (
                self._least_end < len(self._members)
                and self._sizes[self._members[self._least_end]] == self._least_level
            ):
                self._least_end += 1
            self._next_least = 0
        member = self._members[self._next_least]
        self._next_least += 1
        return member

    def next_most(self) -> int | None:
        """The member that gives the next partition; None if nobody has any to give."""
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                # All of the range were excluded: go on with whom comes next.
                self._most_level = self._sizes[self._members[self._most_start - 1]]
            else:
                self._most_level -= 1
            while (
                self._most_start > 0
                and self._sizes[self._members[self._most_start - 1]] == self._most_level
            ):
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return None
        member = self._members[self._next_most]
        self._next_most -= 1
        return member

    def exclude_most(self) -> None:
        """The member that `next_most` just returned has none of this topic to give."""
        chosen, last = self._next_most + 1, self._most_end - 1
        members = self._members
        members[chosen], members[last] = members[last], members[chosen]
        self._most_end -= 1
