"""`ottla cluster throttle`: limits how fast replicas are copied (KIP-73), and removes limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from ottla.cli.chunks import in_chunks
from ottla.cli.client import Connection
from ottla.cli.cluster.replication_throttle import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    RATES,
    REPLICAS,
    Move,
    own_settings,
    rate_settings,
    settings_of_all,
    settings_of_moves,
)
from ottla.cli.command import command
from ottla.cli.configs import alter_configs, describe_configs
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import UsageFailed
from ottla.cli.options import AS_JSON, topics_argument
from ottla.cli.rows import column, emit, row, show_rows
from ottla.cli.screen import note, say
from ottla.cli.sizes import size_text
from ottla.cli.value_types import Size
from ottla.client.admin.reassignments import reassignments

MAX_TOPICS_ASKED: Final = 500


def rate_text(rate_bytes: int | None) -> str:
    return "no limit" if rate_bytes is None else f"{size_text(rate_bytes)}/s"


@row
class BrokerLimit:
    """The rates of a live broker in bytes per second; None: no limit."""

    broker: int
    leader_rate: int | None = column(cell=lambda each: rate_text(each.leader_rate))
    follower_rate: int | None = column(cell=lambda each: rate_text(each.follower_rate))

    @property
    def is_limited(self) -> bool:
        return self.leader_rate is not None or self.follower_rate is not None


@row
class TopicLimit:
    """The replicas of a topic that are limited."""

    topic: str
    leader_replicas: str = column("limited on leaders")
    follower_replicas: str = column("limited on followers")


@row
class Limits:
    """The rates of all live brokers, and the topics with limited replicas."""

    brokers: list[BrokerLimit]
    topics: list[TopicLimit]

    def show(self) -> None:
        if not self.topics and not any(each.is_limited for each in self.brokers):
            say("Replication is not limited.")
            return
        show_rows(self.brokers)
        if self.topics:
            say("")
            show_rows(self.topics)


@command()
@topics_argument(required=False)
@click.option(
    "--rate",
    "rate_bytes",
    type=Size(),
    metavar="SIZE",
    help="Bytes per second of each broker, such as 10MB.",
)
@click.option("--off", is_flag=True, help="Remove every limit.")
@AS_JSON
@cluster_options
def throttle(
    cluster: Cluster, topics: Sequence[str], rate_bytes: int | None, off: bool, as_json: bool
) -> None:
    """Show or change how fast replicas are copied.

    --rate limits the copying of all replicas of the topics, or without topics of what is being
    reassigned now. --off removes all limits.
    """
    if rate_bytes is not None and off:
        raise UsageFailed("--rate and --off exclude each other.")
    if topics and rate_bytes is None:
        raise UsageFailed("topics need --rate.", "For example: --rate 10MB")
    connection = cluster.connection
    if rate_bytes is not None:
        limit(connection, rate_bytes, list(dict.fromkeys(topics)))
    elif off:
        remove_limits(connection)
    emit(limits(connection), as_json=as_json)


def limit(connection: Connection, rate_bytes: int, topics: Sequence[str]) -> None:
    """Limit all brokers, for the topics or for what moves now."""
    if topics:
        connection.existing_topics(topics)
        wanted = {name: settings_of_all() for name in topics}
    else:
        under_way = reassignments(connection.client)
        wanted = settings_of_moves(
            Move(
                topic,
                index,
                tuple(each for each in moving.replicas if each not in moving.adding),
                moving.adding,
            )
            for (topic, index), moving in sorted(under_way.items())
        )
        if not wanted:
            note("No reassignment is under way: the rate applies to no replica yet.")
    for name, settings in wanted.items():
        alter_configs(connection, "topic", name, settings, [])
    for number in sorted(connection.metadata().brokers):
        alter_configs(connection, "broker", str(number), rate_settings(rate_bytes), [])


def remove_limits(connection: Connection) -> None:
    """Unset the settings wherever they are set."""
    found = limits(connection)
    for topic in found.topics:
        alter_configs(connection, "topic", topic.topic, {}, REPLICAS)
    for broker in found.brokers:
        if broker.is_limited:
            alter_configs(connection, "broker", str(broker.broker), {}, RATES)


def limits(connection: Connection) -> Limits:
    """What the brokers' own settings say."""
    metadata = connection.metadata()
    rates: dict[int, dict[str, str]] = {}
    for number in metadata.brokers:
        # librdkafka allows one broker in a request: each has to be asked itself.
        entries = describe_configs(connection, "broker", [str(number)])[str(number)]
        rates[number] = own_settings(entries, RATES, "broker")
    names = sorted(metadata.topics)
    replicas: dict[str, dict[str, str]] = {}
    for some in in_chunks(names, MAX_TOPICS_ASKED):
        for name, entries in describe_configs(connection, "topic", some).items():
            found = own_settings(entries, REPLICAS, "topic")
            if found:
                replicas[name] = found
    return Limits(
        [
            BrokerLimit(
                number, as_number(each.get(LEADER_RATE)), as_number(each.get(FOLLOWER_RATE))
            )
            for number, each in sorted(rates.items())
        ],
        [
            TopicLimit(name, found.get(LEADER_REPLICAS, ""), found.get(FOLLOWER_REPLICAS, ""))
            for name, found in sorted(replicas.items())
        ],
    )


def as_number(text: str | None) -> int | None:
    return None if text is None else int(text)
