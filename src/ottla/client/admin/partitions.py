"""Partitions in the shape of Kafka's requests: a list for each topic."""

from __future__ import annotations

from collections.abc import Iterable


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """The partitions of each topic, in the order given."""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return topics
