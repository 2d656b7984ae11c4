"""Tab completion of names that only the broker knows: topics, groups and broker ids.

Without a reachable broker it offers nothing and prints nothing: the shell is waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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


def complete(
    context: typer.Context, incomplete: str, names: Callable[[Connection], Iterable[str]]
) -> list[str]:
    from ottla.cli.client import connect

    typed = context.params
    try:
        connection = connect(
            typed.get("bootstrap") or default_of(context, "bootstrap"),
            typed.get("client_config"),
            answer_timeout_s=ANSWER_TIMEOUT_S,
        )
        return sorted(name for name in names(connection) if name.startswith(incomplete))
    except Failed:
        return []


def default_of(context: typer.Context, name: str) -> str:
    """The default of a command's option: completion leaves defaults out of the context."""
    for option in context.command.params:
        if option.name == name:
            return str(option.get_default(context))
    raise AssertionError(f"{context.command.name} has no option {name}")
