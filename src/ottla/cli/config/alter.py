"""`ottla config alter`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ottla.cli.command import command
from ottla.cli.complete import complete_setting
from ottla.cli.config.entity import (
    KIND,
    NAME,
    EntitySettings,
    check_exists,
    list_hint,
    settings_named,
)
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import UsageFailed, unknown
from ottla.cli.name_values import pairs
from ottla.cli.options import AS_JSON, UNSET_CONFIG
from ottla.cli.rows import emit
from ottla.client.admin.configs import alter_settings
from ottla.client.admin.setting_units import unit_hint_for
from ottla.wording.nearest import nearest


@command()
@KIND
@NAME
@click.argument(
    "settings",
    metavar="[SETTING=VALUE]...",
    nargs=-1,
    shell_complete=complete_setting,
    help="Settings to change.",
)
@UNSET_CONFIG
@AS_JSON
@cluster_options
def alter(
    cluster: Cluster,
    kind: str,
    name: str,
    settings: Sequence[str],
    unset: Sequence[str],
    as_json: bool,
) -> None:
    """Change settings at runtime: ottla config alter topic t retention.ms=3600000"""
    changes = pairs("a setting", settings)
    if not changes and not unset:
        raise UsageFailed(
            "no setting given.", f"For example: ottla config alter {kind} {name} SETTING=VALUE"
        )
    client = cluster.client
    check_exists(client, kind, name)
    names = [*changes, *unset]
    known = settings_named(client, kind, name)
    for setting in names:
        # A broker may accept settings that it does not list, so only likely typing errors fail
        # here.
        if setting not in known and nearest(setting, known):
            raise unknown(f"{kind} setting", setting, known, list_hint(kind, name))
    with unit_hint_for(changes):
        alter_settings(client, kind, name, changes, unset)
    entries = settings_named(client, kind, name).values()
    chosen = [entry for entry in entries if entry.name in names]
    emit(EntitySettings(kind, name, chosen), as_json=as_json)
