"""What has settings: a topic, a group or a broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from ottla.cli.complete import complete_broker, complete_group, complete_topic
from ottla.cli.existing import existing_topics
from ottla.cli.failures import Failed
from ottla.cli.options import Parameter
from ottla.cli.rows import column, only_json, row, show_rows
from ottla.cli.screen import note
from ottla.client.admin.configs import settings_of
from ottla.client.client import Client

TOPIC: Final = "topic"
BROKER: Final = "broker"
GROUP: Final = "group"
"""It does not have to exist: its settings are there before its members."""
COMPLETE: Final = {TOPIC: complete_topic, BROKER: complete_broker, GROUP: complete_group}


@row
class ShownSetting:
    """A setting of a topic, a group or a broker. `value` of one that is `sensitive` is None."""

    name: str = column("setting")
    value: str | None = column(cell=lambda each: "(hidden)" if each.sensitive else each.value)
    source: str = column("from")
    read_only: bool = only_json(default=False)
    sensitive: bool = only_json(default=False)


@row
class EntitySettings:
    """The settings of one of them that were asked for."""

    kind: str
    name: str
    settings: Sequence[ShownSetting]

    def show(self) -> None:
        if self.settings:
            show_rows(self.settings)
        else:
            note(f"{self.kind} {self.name} has only default settings. To see them, add --all.")


def complete_name(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Topics, groups or ids of brokers, by the kind that was typed."""
    complete = COMPLETE.get(str(context.params.get("kind")))
    return [] if complete is None else complete(context, parameter, incomplete)


KIND: Final[Parameter] = click.argument(
    "kind",
    metavar="KIND",
    type=click.Choice(list(COMPLETE)),
    help="What to configure: topic, broker or group.",
)
NAME: Final[Parameter] = click.argument(
    "name", shell_complete=complete_name, help="A topic name, a broker id or a group."
)


def check_exists(client: Client, kind: str, name: str) -> None:
    """Raises Failed if there is no such topic or broker."""
    if kind == TOPIC:
        existing_topics(client, [name])
        return
    if kind == GROUP:
        return
    brokers = sorted(client.metadata([]).brokers)
    if not name.isdecimal() or int(name) not in brokers:
        numbers = ", ".join(map(str, brokers))
        raise Failed(
            f"there is no broker {name!r}; there {'is' if len(brokers) == 1 else 'are'} {numbers}.",
            "To list the brokers: ottla cluster describe",
        )


def list_hint(kind: str, name: str) -> str:
    return f"To list all settings: ottla config describe {kind} {name} --all"


def settings_named(client: Client, kind: str, name: str) -> dict[str, ShownSetting]:
    """All its settings by name."""
    return {
        each.name: ShownSetting(
            each.name, each.value, each.source, each.is_read_only, each.is_sensitive
        )
        for each in settings_of(client, kind, [name])[name]
    }
