"""Tab completion: names that only the broker knows (topics, groups and broker ids), settings, and
words that options take.

Without a reachable broker it offers no names and prints nothing: the shell is waiting. Settings are
Kafka's, so they need no broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Final

import typer

from ottla.cli.failures import Failed

if TYPE_CHECKING:
    from ottla.cli.client import Connection

ANSWER_TIMEOUT_S: Final = 2.0


def complete_topic(context: typer.Context, incomplete: str) -> list[str]:
    """Topics that begin with what was typed."""
    from ottla.cli.client import is_internal

    def names(connection: Connection) -> Iterable[str]:
        topics = connection.topics()
        return (name for name in topics if incomplete.startswith("_") or not is_internal(name))

    return complete(context, incomplete, names)


def complete_group(context: typer.Context, incomplete: str) -> list[str]:
    """Groups that begin with what was typed."""

    def names(connection: Connection) -> Iterable[str]:
        return (group.group_id for group in connection.groups())

    return complete(context, incomplete, names)


def complete_broker(context: typer.Context, incomplete: str) -> list[str]:
    """Ids of live brokers that begin with what was typed."""

    def names(connection: Connection) -> Iterable[str]:
        return map(str, connection.metadata().brokers)

    return complete(context, incomplete, names)


def complete_topic_setting(incomplete: str) -> list[str]:
    """Names of topic settings, each with its `=`."""
    from ottla.config.topic import TopicConfig

    return assignments(TopicConfig.definitions, incomplete)


def complete_broker_setting(incomplete: str) -> list[str]:
    """Names of broker settings, each with its `=`."""
    from ottla.config import BrokerConfig

    return assignments(BrokerConfig.definitions, incomplete)


def complete_unset(context: typer.Context, incomplete: str) -> list[str]:
    """Names of settings to reset: a broker's after `config alter broker`, else a topic's."""
    kind = str(context.params.get("kind"))
    complete = complete_broker_setting if kind == "broker" else complete_topic_setting
    return [each.removesuffix("=") for each in complete(incomplete)]


def complete_setting(context: typer.Context, incomplete: str) -> list[str]:
    """The same, each with its `=`."""
    return [f"{each}=" for each in complete_unset(context, incomplete)]


def assignments(names: Iterable[str], incomplete: str) -> list[str]:
    return [f"{name}=" for name in sorted(names) if name.startswith(incomplete)]


def complete_start(incomplete: str) -> list[tuple[str, str]]:
    """What `--from` takes, with examples of times and ages."""
    words = {
        "beginning": "the first record",
        "end": "only records from now on",
        "15m": "the records of the last 15 minutes; also s, h, d",
        f"{datetime.now():%Y-%m-%dT%H:00}": "since that local time",
    }
    return [(word, what) for word, what in words.items() if word.startswith(incomplete)]


def complete(
    context: typer.Context, incomplete: str, names: Callable[[Connection], Iterable[str]]
) -> list[str]:
    from ottla.cli.client import connect
    from ottla.cli.profile_option import cluster_of
    from ottla.client.errors import ClientError

    typed = context.params
    try:
        bootstrap, client_config = cluster_of(
            context,
            typed.get("bootstrap") or default_of(context, "bootstrap"),
            typed.get("client_config"),
            typed.get("profile"),
        )
        connection = connect(bootstrap, client_config, answer_timeout_s=ANSWER_TIMEOUT_S)
        return sorted(name for name in names(connection) if name.startswith(incomplete))
    except (Failed, ClientError):
        return []


def default_of(context: typer.Context, name: str) -> str:
    """The default of a command's option: completion leaves defaults out of the context."""
    for option in context.command.params:
        if option.name == name:
            return str(option.get_default(context))
    raise AssertionError(f"{context.command.name} has no option {name}")
