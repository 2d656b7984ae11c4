"""`ottla group describe`."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from typing import TYPE_CHECKING

import click

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.group.description import group_description
from ottla.cli.group.existing import NO_GROUPS, chosen_groups
from ottla.cli.options import AS_JSON, every_option, groups_argument
from ottla.cli.rows import emit
from ottla.cli.screen import CLEAR, write
from ottla.client.client import Client

if TYPE_CHECKING:
    from ottla.messaging.unread_times import UnreadTimes


@command()
@groups_argument(required=False)
@click.option(
    "--time", "in_time", is_flag=True, help="Show how old the first unread record is, too."
)
@click.option("--watch", "-w", is_flag=True, help="Show it again until Ctrl-C.")
@every_option(2.0, "How often --watch shows it.")
@AS_JSON
@cluster_options
def describe(
    cluster: Cluster,
    groups: Sequence[str],
    in_time: bool,
    watch: bool,
    every_s: float,
    as_json: bool,
) -> None:
    """Show each partition's committed offset, lag and consumer."""
    client = cluster.client
    with opened_times(cluster) if in_time else nullcontext() as times:
        show_groups(client, groups, times, as_json=as_json, again=False)
        while watch:
            time.sleep(every_s)
            show_groups(client, groups, times, as_json=as_json, again=True)


def show_groups(
    client: Client,
    groups: Sequence[str],
    times: UnreadTimes | None,
    *,
    as_json: bool,
    again: bool,
) -> None:
    """Print the present state, on a terminal in place of the last. With `times`, lag in time."""
    found = chosen_groups(client, groups)
    described = [group_description(client, each, times) for each in found.values()]
    if again and sys.stdout.isatty():
        write(CLEAR)
    emit(described, as_json=as_json, none=NO_GROUPS)
    sys.stdout.flush()


def opened_times(cluster: Cluster) -> AbstractContextManager[UnreadTimes]:
    # Imported late: only lag in time needs librdkafka.
    from ottla.messaging.unread_times import UnreadTimes

    return closing(UnreadTimes(cluster.settings))
