"""`ottla config`: show and change the settings of topics and brokers."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import click
import typer

from ottla.cli.client import Connection, connect, pairs
from ottla.cli.complete import complete_setting, complete_topic, complete_unset
from ottla.cli.configs import alter_configs, describe_configs
from ottla.cli.failures import Failed, UsageFailed, unknown
from ottla.cli.screen import note, show_json, show_table
from ottla.cli.setting_units import unit_hint_for
from ottla.cli.typer_options import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, ClientConfig, UnsetConfig

commands = typer.Typer(help="Show and change the settings of topics and brokers.")


class Kind(StrEnum):
    TOPIC = "topic"
    BROKER = "broker"


KindOption = Annotated[Kind, typer.Argument(help="What to configure: topic or broker.")]


def complete_name(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Topic names after `topic`."""
    if str(context.params.get("kind")) != Kind.TOPIC:
        return []
    return complete_topic(context, parameter, incomplete)


Name = Annotated[
    str, typer.Argument(help="A topic name or a broker id.", autocompletion=complete_name)
]
Settings = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SETTING=VALUE", help="Settings to change.", autocompletion=complete_setting
    ),
]
All = Annotated[bool, typer.Option("--all", "-a", help="Include defaults.")]
Setting = Annotated[
    list[str] | None,
    typer.Argument(metavar="SETTING", help="Only these settings.", autocompletion=complete_unset),
]


def check_exists(connection: Connection, kind: Kind, name: str) -> None:
    """Raises Failed if there is no such topic or broker."""
    if kind is Kind.TOPIC:
        connection.existing_topics([name])
        return
    brokers = sorted(connection.metadata().brokers)
    if not name.isdecimal() or int(name) not in brokers:
        numbers = ", ".join(map(str, brokers))
        raise Failed(
            f"there is no broker {name!r}; there {'is' if len(brokers) == 1 else 'are'} {numbers}.",
            f"For example: ottla config describe broker {brokers[0]}",
        )


def list_hint(kind: Kind, name: str) -> str:
    return f"To list all settings: ottla config describe {kind.value} {name} --all"


@commands.command()
def describe(
    kind: KindOption,
    name: Name,
    settings: Setting = None,
    all_settings: All = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Show settings that differ from the default, all settings with --all, or the ones you name."""
    connection = connect(bootstrap, client_config)
    check_exists(connection, kind, name)
    entries = describe_configs(connection, kind.value, [name])[name]
    known = [entry["name"] for entry in entries]
    for setting in settings or ():
        if setting not in known:
            raise unknown(
                f"{kind.value} setting",
                setting,
                known,
                list_hint(kind, name),
            )
    chosen = [entry for entry in entries if is_wanted(entry, settings, all_settings)]
    if as_json:
        show_json({"kind": kind.value, "name": name, "settings": chosen})
    elif chosen:
        show_table(
            ["setting", "value", "from"],
            [[entry["name"], shown_value(entry), entry["source"]] for entry in chosen],
        )
    else:
        note(f"{kind.value} {name} has only default settings. To see them, add --all.")


def is_wanted(entry: dict[str, Any], settings: list[str] | None, all_settings: bool) -> bool:
    if settings:
        return entry["name"] in settings
    return all_settings or entry["source"] != "default"


def shown_value(entry: dict[str, Any]) -> str | None:
    return "(hidden)" if entry["sensitive"] else entry["value"]


@commands.command()
def alter(
    kind: KindOption,
    name: Name,
    settings: Settings = None,
    unset: UnsetConfig = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Change settings at runtime: ottla config alter topic t retention.ms=3600000"""
    changes = pairs("a setting", settings)
    if not changes and not unset:
        raise UsageFailed(
            "no setting given.",
            f"For example: ottla config alter {kind.value} {name} SETTING=VALUE",
        )
    connection = connect(bootstrap, client_config)
    check_exists(connection, kind, name)
    names = [*changes, *(unset or ())]
    known = [entry["name"] for entry in describe_configs(connection, kind.value, [name])[name]]
    for setting in names:
        # A broker may accept settings that it does not list, so only likely typing errors fail
        # here.
        failure = unknown(f"{kind.value} setting", setting, known, list_hint(kind, name))
        if setting not in known and "Did you mean" in failure.message:
            raise failure
    with unit_hint_for(changes):
        alter_configs(connection, kind.value, name, changes, list(unset or ()))
    entries = describe_configs(connection, kind.value, [name])[name]
    chosen = [entry for entry in entries if entry["name"] in names]
    if as_json:
        show_json({"kind": kind.value, "name": name, "settings": chosen})
        return
    show_table(
        ["setting", "value", "from"],
        [[entry["name"], shown_value(entry), entry["source"]] for entry in chosen],
    )
