"""What an assignor is given and what it returns.

The results are those of Apache Kafka's assignors for the same order of members and topics. Kafka's
order is that of Java's hash maps; here members come in the order in which they are given, topics by
id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias
from uuid import UUID

Partitions: TypeAlias = Mapping[UUID, frozenset[int]]
"""Topic id to partitions; a topic without partitions is left out."""

NO_PARTITIONS: Partitions = {}


class AssignorError(Exception):
    """The assignor cannot assign: a member subscribes to a topic that does not exist."""


class MemberSpec(NamedTuple):
    """What an assignor knows of one member."""

    subscribed: frozenset[UUID]
    """Ids of the topics that it subscribes to and that exist."""
    assigned: Partitions = NO_PARTITIONS
    """Its target assignment so far."""
    instance_id: str | None = None


class GroupSpec(NamedTuple):
    """A group to be assigned."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[UUID, int]
    """How many partitions each topic has."""
    is_homogeneous: bool
    """All members subscribe to the same topics."""

    def partition_count(self, topic: UUID) -> int:
        """How many partitions the topic has; raises AssignorError where there is no such topic."""
        try:
            return self.partition_counts[topic]
        except KeyError:
            raise AssignorError(
                f"a member subscribes to topic {topic}, which does not exist"
            ) from None


Assignment: TypeAlias = dict[str, Partitions]
"""Member id to its new target; a member that is missing gets nothing."""
Assignor: TypeAlias = Callable[[GroupSpec], Assignment]


def java_order(topic: UUID) -> tuple[int, int]:
    """The key that sorts topic ids as Kafka does: two signed numbers of 64 bits."""
    return _signed(topic.int >> 64), _signed(topic.int & 0xFFFF_FFFF_FFFF_FFFF)


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits
