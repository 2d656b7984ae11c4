"""What a mirror commits at the target for a partition: the next source offset, and as the commit's
metadata (JSON) from which topic of which clusters the records are.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Origin(NamedTuple):
    """Where the records of a mirrored topic are from."""

    topic_id: str | None
    """Of the source's topic; None if its brokers have no ids (before Apache Kafka 2.8)."""
    target_id: str | None
    """Of the target's topic. A position belongs to this topic alone: one that was deleted and
    created again is empty, and is mirrored from the beginning.
    """
    clusters: tuple[str, ...]
    """The ids of the source's cluster, and of those that it mirrors the topic from."""


class Position(NamedTuple):
    """Where a partition stands: the next source offset, and where its records are from."""

    offset: int
    origin: Origin
    epoch: int | None = None
    """The leader epoch of the record before, by which the source's leader knows whether its log has
    it still (KIP-320). None if there is no record just before.
    """


def written(origin: Origin) -> str:
    """As the metadata of a commit."""
    return json.dumps(
        {"topic_id": origin.topic_id, "target_id": origin.target_id, "clusters": origin.clusters}
    )


def read_origin(metadata: str) -> Origin | None:
    """None for the metadata of another program."""
    try:
        # confluent-kafka commits metadata with the NUL at the end of its C string, and reads it
        # until the next one: behind what another client committed are bytes of the heap.
        found: Any = json.JSONDecoder().raw_decode(metadata)[0]
        clusters = tuple(str(each) for each in found["clusters"])
        topic_id, target_id = found["topic_id"], found["target_id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return Origin(_text(topic_id), _text(target_id), clusters)


def metadata_of(commit: Any) -> str:
    """The metadata of a commit as confluent-kafka gives it; what is behind it may be no UTF-8, and
    is decoded when the attribute is read.
    """
    try:
        return commit.metadata or ""
    except UnicodeDecodeError as error:
        return error.object.decode(errors="replace")


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def is_same(one: str | None, other: str | None) -> bool:
    """Whether two ids of topics may be those of one topic; None is not known."""
    return one is None or other is None or one == other
