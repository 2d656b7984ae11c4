"""The settings of a replication throttle (KIP-73), as Kafka's ReassignPartitionsCommand sets them.

Brokers have a rate for what leaders send and one for what followers fetch. It applies only to the
replicas that the topic's settings list: `partition:broker`, or `*` for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ottla.cli.configs import Setting

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
RATES: Final = (LEADER_RATE, FOLLOWER_RATE)
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
REPLICAS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
ALL: Final = "*"


class Move(NamedTuple):
    """A partition that moves: the brokers that have it, and those that copy it."""

    topic: str
    partition: int
    sources: tuple[int, ...]
    destinations: tuple[int, ...]


def rate_settings(rate: int) -> dict[str, str]:
    """Of a broker. `rate` is in bytes per second."""
    return dict.fromkeys(RATES, str(rate))


def settings_of_all() -> dict[str, str]:
    """Of a topic all of whose replicas are throttled."""
    return dict.fromkeys(REPLICAS, ALL)


def settings_of_moves(moves: Iterable[Move]) -> dict[str, dict[str, str]]:
    """Of each topic with moves. Every source may lead the partition while it moves; replicas that
    are in sync are not slowed down as followers.
    """
    pairs: dict[str, dict[str, list[str]]] = {}
    for move in moves:
        found = pairs.setdefault(move.topic, {name: [] for name in REPLICAS})
        found[LEADER_REPLICAS] += _pairs(move.partition, move.sources)
        found[FOLLOWER_REPLICAS] += _pairs(move.partition, move.destinations)
    return {
        topic: {name: ",".join(each) for name, each in found.items()}
        for topic, found in pairs.items()
    }


def _pairs(partition: int, brokers: Sequence[int]) -> list[str]:
    return [f"{partition}:{broker}" for broker in sorted(brokers)]


def own_settings(entries: Iterable[Setting], names: Sequence[str], source: str) -> dict[str, str]:
    """Which of the named settings are set on a broker or topic, from their descriptions."""
    return {
        str(entry.name): str(entry.value)
        for entry in entries
        if entry.name in names and entry.source == source and entry.value
    }
