"""Tab completion: names that only the broker knows (topics, groups and broker ids), settings, and
words that options take.

Without a reachable broker it offers no names and prints nothing: the shell is waiting. Settings are
Kafka's, so they need no broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from ottla.cli.context import DEFAULT_BOOTSTRAP, cluster_of
from ottla.wording.errors import ReportedError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ottla.client.client import Client

WITHIN_S: Final = 2.0

Completion: TypeAlias = Callable[[click.Context, click.Parameter, str], list[Any]]
"""`shell_complete` of an argument or an option."""


def of_cluster(names: Callable[[Client, str], Iterable[str]]) -> Completion:
    """Offers the names that begin with what was typed, which `names` gets beside the client."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        from ottla.client.patience import Patience

        typed = context.params
        try:
            cluster = cluster_of(
                context,
                typed.get("bootstrap") or DEFAULT_BOOTSTRAP,
                typed.get("client_config") or (),
                typed.get("profile"),
                Patience(answer_s=WITHIN_S, retry_for_s=WITHIN_S),
            )
            found = names(cluster.client, incomplete)
            return sorted(name for name in found if name.startswith(incomplete))
        except ReportedError:
            return []

    return complete


def of_words(words: Callable[[], Iterable[str]]) -> Completion:
    """Offers the words that begin with what was typed."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        return [word for word in words() if word.startswith(incomplete)]

    return complete


@of_cluster
def complete_topic(client: Client, incomplete: str) -> Iterable[str]:
    """Topics; internal ones after an underscore."""
    from ottla.client.admin.topics import is_internal

    topics = client.metadata().topics
    return (name for name in topics if incomplete.startswith("_") or not is_internal(name))


@of_cluster
def complete_group(client: Client, _incomplete: str) -> Iterable[str]:
    from ottla.client.admin.groups import listed_groups

    return (each.group for each in listed_groups(client))


@of_cluster
def complete_user(client: Client, _incomplete: str) -> Iterable[str]:
    """Users with a password for SCRAM."""
    from ottla.client.admin.users import users

    return (each.name for each in users(client))


@of_cluster
def complete_broker(client: Client, _incomplete: str) -> Iterable[str]:
    """Ids of live brokers."""
    return map(str, client.metadata([]).brokers)


@of_words
def complete_topic_setting() -> Iterable[str]:
    """Settings of topics as `name=`, for the value to follow."""
    from ottla.config.topic import TopicConfig

    return (f"{name}=" for name in sorted(TopicConfig.definitions))


@of_words
def complete_broker_setting() -> Iterable[str]:
    from ottla.config import BrokerConfig

    return (f"{name}=" for name in sorted(BrokerConfig.definitions))


@of_words
def complete_group_setting() -> Iterable[str]:
    from ottla.config.group import GroupConfig

    return (f"{name}=" for name in sorted(GroupConfig.definitions))


def complete_setting(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Settings as `name=`: those of the kind that was typed (`config alter`), else a topic's."""
    of_kind = {"broker": complete_broker_setting, "group": complete_group_setting}
    complete = of_kind.get(str(context.params.get("kind")), complete_topic_setting)
    return complete(context, parameter, incomplete)


def complete_unset(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """The names of the same settings."""
    return [each.removesuffix("=") for each in complete_setting(context, parameter, incomplete)]


def complete_start(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """What `--from` takes, with examples of times and ages."""
    from click.shell_completion import CompletionItem

    words = {
        "beginning": "the first record",
        "end": "only records from now on",
        "15m": "the records of the last 15 minutes; also s, h, d",
        f"{datetime.now():%Y-%m-%dT%H:00}": "since that local time",
    }
    return [
        CompletionItem(word, help=what)
        for word, what in words.items()
        if word.startswith(incomplete)
    ]
