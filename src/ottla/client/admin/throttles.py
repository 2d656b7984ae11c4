"""The settings of a replication throttle (KIP-73), as Kafka's ReassignPartitionsCommand sets them.

Brokers have a rate for what leaders send and one for what followers fetch. It applies only to the
replicas that the topic's settings list: `partition:broker`, or `*` for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.client.admin.configs import Setting, alter_settings, settings_of, topic_settings
from ottla.client.admin.reassignments import reassignments
from ottla.client.client import Client

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
RATES: Final = (LEADER_RATE, FOLLOWER_RATE)
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
REPLICAS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class BrokerLimit:
    """The rates of a live broker in bytes per second; None: no limit."""

    broker: int
    leader_rate: int | None
    follower_rate: int | None

    @property
    def is_limited(self) -> bool:
        return self.leader_rate is not None or self.follower_rate is not None


@dataclass(frozen=True, slots=True)
class TopicLimit:
    """The replicas of a topic that are limited."""

    topic: str
    leader_replicas: str
    follower_replicas: str


@dataclass(frozen=True, slots=True)
class Limits:
    """The rates of all live brokers, and the topics with limited replicas."""

    brokers: list[BrokerLimit]
    topics: list[TopicLimit]

    @property
    def are_none(self) -> bool:
        return not self.topics and not any(each.is_limited for each in self.brokers)


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


def limit(client: Client, rate_bytes: int, topics: Sequence[str]) -> bool:
    """Limits all brokers, for all replicas of the topics; without topics for what moves now.
    Returns whether the rate applies to any replica.
    """
    wanted = {name: settings_of_all() for name in topics}
    if not topics:
        wanted = settings_of_moves(
            Move(
                topic,
                index,
                tuple(each for each in moving.replicas if each not in moving.adding),
                moving.adding,
            )
            for (topic, index), moving in sorted(reassignments(client).items())
        )
    for name, settings in wanted.items():
        alter_settings(client, "topic", name, settings, [])
    for number in sorted(client.metadata([]).brokers):
        alter_settings(client, "broker", str(number), rate_settings(rate_bytes), [])
    return bool(wanted)


def remove_limits(client: Client) -> None:
    """Unset the settings wherever they are set."""
    found = limits(client)
    for topic in found.topics:
        alter_settings(client, "topic", topic.topic, {}, REPLICAS)
    for broker in found.brokers:
        if broker.is_limited:
            alter_settings(client, "broker", str(broker.broker), {}, RATES)


def limits(client: Client) -> Limits:
    """What the brokers' own settings say."""
    metadata = client.metadata()
    rates = {}
    for number in metadata.brokers:
        settings = settings_of(client, "broker", [str(number)])[str(number)]
        rates[number] = own_settings(settings, RATES, "broker")
    found = {
        name: own_settings(settings, REPLICAS, "topic")
        for name, settings in topic_settings(client, sorted(metadata.topics)).items()
    }
    replicas = {name: each for name, each in found.items() if each}
    return Limits(
        [
            BrokerLimit(number, _number(each.get(LEADER_RATE)), _number(each.get(FOLLOWER_RATE)))
            for number, each in sorted(rates.items())
        ],
        [
            TopicLimit(name, found.get(LEADER_REPLICAS, ""), found.get(FOLLOWER_REPLICAS, ""))
            for name, found in sorted(replicas.items())
        ],
    )


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
