"""The consumer protocol: the bytes in which classic consumers tell their subscription, and are told
their assignment (ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json; KIP-429,
KIP-792, KIP-881).

    subscription  version int16, topics [string], user data bytes (int32 size, -1: null)
                  v1: owned [topic string, partitions [int32]]; v2: generation int32;
                  v3: rack string (-1: null)
    assignment    version int16, partitions [topic string, partitions [int32]], user data bytes

A newer version is read as the newest that is known here. They are not stored: a group that is
converted keeps what they say in its own records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ottla.shards.encoding import Reader, Writer

NEWEST_VERSION: Final = 3
_OWNED_SINCE, _GENERATION_SINCE, _RACK_SINCE = 1, 2, 3


class Subscription(NamedTuple):
    """What a classic consumer says of itself."""

    version: int
    topics: frozenset[str]
    owned: Mapping[str, frozenset[int]]
    rack_id: str | None


class Assignment(NamedTuple):
    """What the leader of a classic group has assigned to a member."""

    partitions: Mapping[str, frozenset[int]]
    user_data: bytes
    """Of an assignor that keeps something there."""


def read_subscription(content: bytes) -> Subscription:
    """Raises ValueError."""
    reader = Reader(content)
    version = _version(reader)
    topics = frozenset(reader.string() for _ in range(reader.array_size()))
    _user_data(reader)
    owned = _partitions(reader) if version >= _OWNED_SINCE else {}
    if version >= _GENERATION_SINCE:
        reader.int32()
    rack_id = reader.nullable_string() if version >= _RACK_SINCE else None
    return Subscription(version, topics, owned, rack_id or None)


def read_version(content: bytes) -> int:
    """Of a subscription, without the rest. Raises ValueError."""
    return _version(Reader(content))


def read_assignment(content: bytes) -> Assignment:
    """Raises ValueError. A member that was not assigned anything may have no bytes."""
    if not content:
        return Assignment({}, b"")
    reader = Reader(content)
    _version(reader)
    return Assignment(_partitions(reader), _user_data(reader))


def write_assignment(version: int, partitions: Iterable[tuple[str, Iterable[int]]]) -> bytes:
    """In the version of the member's subscription; topics and partitions sorted."""
    writer = Writer()
    writer.int16(version)
    topics = sorted((topic, sorted(numbers)) for topic, numbers in partitions)
    writer.int32(len(topics))
    for topic, numbers in topics:
        writer.string(topic)
        writer.int32(len(numbers))
        for number in numbers:
            writer.int32(number)
    writer.int32(-1)
    return writer.content()


def _version(reader: Reader) -> int:
    version = reader.int16()
    if version < 0:
        raise ValueError("negative version of the consumer protocol")
    return min(version, NEWEST_VERSION)


def _user_data(reader: Reader) -> bytes:
    size = reader.int32()
    return b"" if size < 0 else reader.take(size)


def _partitions(reader: Reader) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for _ in range(reader.array_size()):
        topic = reader.string()
        # One that is named again and again must not be copied each time.
        found.setdefault(topic, set()).update(reader.int32() for _ in range(reader.array_size()))
    return {topic: frozenset(partitions) for topic, partitions in found.items()}
