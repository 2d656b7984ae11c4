"""Tab completion: names that only the broker knows (topics, groups and broker ids), settings, and
words that options take.

Without a reachable broker it offers no names and prints nothing: the shell is waiting. Settings are
Kafka's, so they need no broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from ottla.cli.context import DEFAULT_BOOTSTRAP, cluster_of
from ottla.wording.errors import ReportedError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ottla.client.client import Client

WITHIN_S: Final = 2.0


def complete_topic(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Topics that begin with what was typed."""
    from ottla.client.admin.topics import is_internal

    def names(client: Client) -> Iterable[str]:
        topics = client.metadata().topics
        return (name for name in topics if incomplete.startswith("_") or not is_internal(name))

    return complete(context, incomplete, names)


def complete_group(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Groups that begin with what was typed."""

    def names(client: Client) -> Iterable[str]:
        from ottla.client.admin.groups import listed_groups

        return (each.group for each in listed_groups(client))

    return complete(context, incomplete, names)


def complete_user(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Users with a password for SCRAM that begin with what was typed."""

    def names(client: Client) -> Iterable[str]:
        from ottla.client.admin.users import users

        return (each.name for each in users(client))

    return complete(context, incomplete, names)


def complete_broker(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Ids of live brokers that begin with what was typed."""

    def names(client: Client) -> Iterable[str]:
        return map(str, client.metadata([]).brokers)

    return complete(context, incomplete, names)


def complete_topic_setting(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Complete a topic setting as `name=`, for its value to follow."""
    from ottla.config.topic import TopicConfig

    return assignments(TopicConfig.definitions, incomplete)


def complete_broker_setting(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Complete a broker setting as `name=`, for its value to follow."""
    from ottla.config import BrokerConfig

    return assignments(BrokerConfig.definitions, incomplete)


def complete_group_setting(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Names of group settings, each with its `=`."""
    from ottla.config.group import GroupConfig

    return assignments(GroupConfig.definitions, incomplete)


def complete_unset(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Names of settings to reset: those of the kind after `config alter`, else a topic's."""
    of_kind = {"broker": complete_broker_setting, "group": complete_group_setting}
    complete = of_kind.get(str(context.params.get("kind")), complete_topic_setting)
    return [each.removesuffix("=") for each in complete(context, parameter, incomplete)]


def complete_setting(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Names of settings with `=` after each: those of the kind after `config alter`, else a
    topic's.
    """
    return [f"{each}=" for each in complete_unset(context, parameter, incomplete)]


def assignments(names: Iterable[str], incomplete: str) -> list[str]:
    return [f"{name}=" for name in sorted(names) if name.startswith(incomplete)]


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


def complete(
    context: click.Context, incomplete: str, names: Callable[[Client], Iterable[str]]
) -> list[str]:
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
        return sorted(name for name in names(cluster.client) if name.startswith(incomplete))
    except ReportedError:
        return []
