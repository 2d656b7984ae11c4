"""Partitions in the shape of Kafka's requests: a list for each topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from ottla.client.topic_partition import TopicPartition

T = TypeVar("T")


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """The partitions of each topic, in the order given."""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return topics


def by_leader(
    partitions: Iterable[TopicPartition], leaders: Mapping[TopicPartition, int]
) -> dict[int, list[TopicPartition]]:
    """The partitions of each leader; those of -1 have none."""
    found: dict[int, list[TopicPartition]] = {}
    for each in partitions:
        found.setdefault(leaders.get(each, -1), []).append(each)
    return dict(sorted(found.items()))


def in_chunks(items: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    """The items in order, `most` at a time: what one request can carry."""
    return (items[first : first + most] for first in range(0, len(items), most))
