"""Why a record is in its partition, and in which others its key is, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.journey.partitioner import Choice, Reason
from ottla.journey.words.line import Document

_WHOSE: Final = {
    "murmur2": "Java's default",
    "crc32": "librdkafka's default",
    "fnv1a": "Sarama's default",
}
_UNKNOWN: Final = (
    "set by the producer, or by a partitioner that Ottla does not know, or there were fewer "
    "partitions"
)


def format_choice(choice: Choice) -> str:
    """The `why` of a chosen partition."""
    match choice.reason:
        case Reason.ONE_PARTITION:
            return "the topic has one partition"
        case Reason.NO_KEY:
            return "no key: the producer chose (sticky or round-robin)"
        case Reason.AGREED:
            return _agreed(choice)
    if choice.may_be_chance:
        whose = "this key" if choice.keys == 1 else f"all {choice.keys} keys near it"
        return f"{_UNKNOWN}: no default one chooses it for {whose}"
    best = max(choice.agreeing, key=lambda name: choice.agreeing[name])
    agrees = f"agrees for {choice.agreeing[best]} of {choice.keys} keys near it"
    return f"{_UNKNOWN}: {_named(best)} {agrees}"


def _agreed(choice: Choice) -> str:
    *others, last = map(_named, choice.always)
    said = f"{', '.join(others)} and {last} choose it" if others else f"{last} chooses it"
    if choice.keys == 1:
        return f"{said} for this key; there is no other near it to compare"
    chance = ", which may be chance" if choice.may_be_chance else ""
    return f"{said} for all {choice.keys} keys near it{chance}"


def _named(name: str) -> str:
    return f"{name} ({_WHOSE[name]})"


def format_elsewhere(elsewhere: Document | None) -> list[str]:
    """A line for each other partition with the key, and one for those that were not searched."""
    if elsewhere is None:
        return []
    said = [
        f"its key is in partition {one['partition']}, too (newest: offset {one['offset']}): "
        f"{one['why']}"
        for one in elsewhere["messages"]
    ]
    if elsewhere["not_searched"]:
        said.append(f"{format_partitions(elsewhere['not_searched'])} not searched for its key")
    return said


def format_partitions(partitions: Sequence[int]) -> str:
    """`partition 3`, or `partitions 0, 1 and 3`."""
    *others, last = map(str, partitions)
    return f"partitions {', '.join(others)} and {last}" if others else f"partition {last}"
