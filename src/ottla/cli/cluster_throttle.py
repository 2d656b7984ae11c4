"""`ottla cluster throttle`: limits how fast replicas are copied (KIP-73), and removes limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from ottla.cli.chunks import in_chunks
from ottla.cli.client import Connection, connect
from ottla.cli.configs import alter_configs, describe_configs
from ottla.cli.failures import UsageFailed
from ottla.cli.replication_throttle import (
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
from ottla.cli.screen import note, say, show_json, show_table
from ottla.cli.sizes import parse_size, size_text
from ottla.cli.typer_options import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    ClientConfig,
    SomeTopicNames,
)
from ottla.client.admin.reassignments import reassignments

MAX_TOPICS_ASKED: Final = 500

Rate = Annotated[
    str | None,
    typer.Option("--rate", metavar="SIZE", help="Bytes per second of each broker, such as 10MB."),
]
Off = Annotated[bool, typer.Option("--off", help="Remove every limit.")]


def throttle(
    topics: SomeTopicNames = None,
    rate: Rate = None,
    off: Off = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Show or change how fast replicas are copied.

    --rate limits the copying of all replicas of the topics, or without topics of what is being
    reassigned now. --off removes all limits.
    """
    if rate is not None and off:
        raise UsageFailed("--rate and --off exclude each other.")
    if topics and rate is None:
        raise UsageFailed("topics need --rate.", "For example: --rate 10MB")
    rate_bytes = None if rate is None else parse_size("--rate", rate)
    connection = connect(bootstrap, client_config)
    if rate_bytes is not None:
        limit(connection, rate_bytes, list(dict.fromkeys(topics or ())))
    elif off:
        remove_limits(connection)
    document = throttle_document(connection)
    if as_json:
        show_json(document)
    else:
        show_throttle(document)


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
    document = throttle_document(connection)
    for each in document["topics"]:
        alter_configs(connection, "topic", each["topic"], {}, REPLICAS)
    for each in document["brokers"]:
        if each["leader_rate"] is not None or each["follower_rate"] is not None:
            alter_configs(connection, "broker", str(each["broker"]), {}, RATES)


def throttle_document(connection: Connection) -> dict[str, Any]:
    """The rate of each live broker (null: no limit), and the topics with limited replicas."""
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
    return {
        "brokers": [
            {
                "broker": number,
                "leader_rate": as_number(each.get(LEADER_RATE)),
                "follower_rate": as_number(each.get(FOLLOWER_RATE)),
            }
            for number, each in sorted(rates.items())
        ],
        "topics": [
            {
                "topic": name,
                "leader_replicas": found.get(LEADER_REPLICAS, ""),
                "follower_replicas": found.get(FOLLOWER_REPLICAS, ""),
            }
            for name, found in sorted(replicas.items())
        ],
    }


def as_number(text: str | None) -> int | None:
    return None if text is None else int(text)


def show_throttle(document: dict[str, Any]) -> None:
    """Print the limits."""
    limited = any(each["leader_rate"] or each["follower_rate"] for each in document["brokers"])
    if not limited and not document["topics"]:
        say("Replication is not limited.")
        return
    show_table(
        ["broker", "leader rate", "follower rate"],
        [
            [each["broker"], shown_rate(each["leader_rate"]), shown_rate(each["follower_rate"])]
            for each in document["brokers"]
        ],
    )
    if document["topics"]:
        say("")
        show_table(
            ["topic", "limited on leaders", "limited on followers"],
            [list(each.values()) for each in document["topics"]],
        )


def shown_rate(rate_bytes: int | None) -> str:
    return "no limit" if rate_bytes is None else f"{size_text(rate_bytes)}/s"
