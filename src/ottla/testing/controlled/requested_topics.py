"""The topics that a request names, for faults that choose by topic."""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Broker
from ottla.protocol.versions import FETCH

_ARRAYS: Final = (
    "topic_data",
    "topics",
    "topic_names",
    "v3_and_below_topics",
    "topic_partitions",
    "transactions",
    "groups",
    "dirs",
)
_NAMES: Final = ("name", "topic", "topic_name")
_OF_GROUPS: Final = frozenset((15, 16, 42))
"""DescribeGroups, ListGroups, DeleteGroups: the strings in their arrays are groups."""


def requested_topics(request: Any, broker: Broker) -> frozenset[str]:
    """By name, also if the request has ids; a fetch names all topics of its session (KIP-227)."""
    key = request.__api_key__
    if key in _OF_GROUPS:
        return frozenset()
    found = set(_topics(request, broker))
    if key == FETCH:
        for topic in broker.fetch_sessions.topics(getattr(request, "session_id", 0)):
            found.update(_name(topic, broker))
    return frozenset(found)


def _topics(message: Any, broker: Broker) -> list[str]:
    found: list[str] = []
    for array in _ARRAYS:
        for each in getattr(message, array, None) or ():
            if isinstance(each, str):
                found.append(each)
                continue
            names = [getattr(each, name, None) for name in _NAMES]
            found += [name for name in names if name]
            found += _name(getattr(each, "topic_id", None), broker)
            found += _topics(each, broker)
    return found


def _name(topic: Any, broker: Broker) -> list[str]:
    if topic is None or isinstance(topic, str):
        return [topic] if topic else []
    known = broker.image.topic_by_id(topic)
    return [] if known is None else [known.name]
