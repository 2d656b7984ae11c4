"""`ottla config describe`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ottla.cli.command import command
from ottla.cli.complete import complete_unset
from ottla.cli.config.entity import (
    KIND,
    NAME,
    EntitySettings,
    ShownSetting,
    check_exists,
    list_hint,
    settings_named,
)
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import unknown
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit


@command()
@KIND
@NAME
@click.argument(
    "settings",
    metavar="[SETTING]...",
    nargs=-1,
    shell_complete=complete_unset,
    help="Only these settings.",
)
@click.option("--all", "-a", "all_settings", is_flag=True, help="Include defaults.")
@AS_JSON
@cluster_options
def describe(
    cluster: Cluster,
    kind: str,
    name: str,
    settings: Sequence[str],
    all_settings: bool,
    as_json: bool,
) -> None:
    """Show settings that differ from the default, all settings with --all, or the ones you name."""
    check_exists(cluster.client, kind, name)
    known = settings_named(cluster.client, kind, name)
    for setting in settings:
        if setting not in known:
            raise unknown(f"{kind} setting", setting, known, list_hint(kind, name))
    chosen = [each for each in known.values() if is_wanted(each, settings, all_settings)]
    emit(EntitySettings(kind, name, chosen), as_json=as_json)


def is_wanted(entry: ShownSetting, settings: Sequence[str], all_settings: bool) -> bool:
    if settings:
        return entry.name in settings
    return all_settings or entry.source != "default"
