"""`ottla group`: list, describe, reset and delete consumer groups, and move their offsets."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import closing, nullcontext
from typing import Annotated

import typer

from ottla.cli.client import Connection, connect
from ottla.cli.deletion import delete_all
from ottla.cli.failures import EXIT_FAILED, unknown
from ottla.cli.group_documents import (
    committed_offsets,
    described_groups,
    group_document,
    no_active_members,
    show_group,
    state_name,
)
from ottla.cli.group_members import LIST_HINT, NO_GROUPS, existing_groups, members
from ottla.cli.group_offset_deletion import delete_offsets
from ottla.cli.group_reset import (
    Target,
    carry_out,
    choose_partitions,
    confirm,
    parse_target,
    plan,
)
from ottla.cli.group_transfer import export_offsets, import_offsets
from ottla.cli.name_filter import Filter, name_filter
from ottla.cli.screen import CLEAR, note, show_documents, show_list, write
from ottla.cli.typer_options import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    ClientConfig,
    DryRun,
    GroupName,
    GroupNames,
    GroupTopics,
    SomeGroupNames,
    Yes,
)
from ottla.cli.unread_times import UnreadTimes, add_times

commands = typer.Typer(help="List, describe, reset and delete consumer groups.")

ToEarliest = Annotated[bool, typer.Option("--to-earliest", help="To the first record.")]
ToLatest = Annotated[bool, typer.Option("--to-latest", help="To the end, after every record.")]
ToOffset = Annotated[
    int | None, typer.Option("--to-offset", min=0, metavar="N", help="To this offset.")
]
ToTime = Annotated[
    str | None,
    typer.Option(
        "--to-time",
        metavar="TIME",
        help="To the first record at or after a time: 2026-01-31T12:00, ms, or an age (15m).",
    ),
]
ShiftBy = Annotated[
    int | None,
    typer.Option("--shift-by", metavar="N", help="Forward by N records, or back if N is negative."),
]

WatchIt = Annotated[bool, typer.Option("--watch", "-w", help="Show it again until Ctrl-C.")]
InTime = Annotated[
    bool, typer.Option("--time", help="Show how old the first unread record is, too.")
]
Every = Annotated[
    float,
    typer.Option("--every", min=0.2, metavar="SECONDS", help="How often --watch shows it."),
]


@commands.command("list")
def list_groups(
    filter_: Filter = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """List groups with their states."""
    matches = name_filter(filter_)
    groups = connect(bootstrap, client_config).groups()
    rows = [
        {
            "group": str(group.group_id),
            "state": state_name(group.state),
            "type": str(group.type.name).lower(),
        }
        for group in groups
        if matches(str(group.group_id))
    ]
    show_list(["group", "state", "type"], rows, as_json=as_json, none=NO_GROUPS)


@commands.command()
def describe(
    groups: SomeGroupNames = None,
    in_time: InTime = False,
    watch: WatchIt = False,
    every: Every = 2.0,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Show each partition's committed offset, lag and consumer."""
    connection = connect(bootstrap, client_config)
    with closing(UnreadTimes(connection)) if in_time else nullcontext() as times:
        show_groups(connection, groups, times, as_json=as_json, again=False)
        while watch:
            time.sleep(every)
            show_groups(connection, groups, times, as_json=as_json, again=True)


def show_groups(
    connection: Connection,
    groups: Sequence[str] | None,
    times: UnreadTimes | None,
    *,
    as_json: bool,
    again: bool,
) -> None:
    """Print the present state, on a terminal in place of the last. With `times`, lag in time."""
    if groups:
        found = existing_groups(connection, groups)
    else:
        names = [str(group.group_id) for group in connection.groups()]
        found = described_groups(connection, names)
    documents = [group_document(connection, name, each) for name, each in found.items()]
    if times is not None:
        add_times(documents, times, int(time.time() * 1000))
    if again and sys.stdout.isatty():
        write(CLEAR)
    show_documents(
        documents,
        show_group,
        as_json=as_json,
        none=NO_GROUPS,
    )
    sys.stdout.flush()


@commands.command()
def reset(
    group: GroupName,
    topic: GroupTopics = None,
    to_earliest: ToEarliest = False,
    to_latest: ToLatest = False,
    to_offset: ToOffset = None,
    to_time: ToTime = None,
    shift_by: ShiftBy = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Move a group's committed offsets. The group must have no active members.

    Asks first if that moves several topics and --topic names none, unless --yes.
    """
    target = parse_target(
        Target(to_earliest, to_latest, to_offset, to_time, shift_by),
        group,
        int(time.time() * 1000),
    )
    connection = connect(bootstrap, client_config)
    found = described_groups(connection, [group])
    if group not in found and not topic:
        known = [str(each.group_id) for each in connection.groups()]
        raise unknown("group", group, known, f"{LIST_HINT}. To create it, give --topic.")
    if group in found and not dry_run:
        no_active_members(group, found[group])
    committed = {key: at.offset for key, at in committed_offsets(connection, group).items()}
    partitions = choose_partitions(connection, group, topic, committed)
    moves = plan(connection, target, partitions, committed)
    if not (topic or yes or dry_run) and not confirm(group, moves):
        note("Nothing was changed.")
        raise typer.Exit(EXIT_FAILED)
    carry_out(connection, group, moves, dry_run=dry_run, as_json=as_json)
    if group not in found:  # a mistyped name would go unnoticed
        will = "would be" if dry_run else "was"
        note(f"There was no group {group!r}: it {will} created.")


@commands.command()
def delete(
    groups: GroupNames,
    yes: Yes = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Delete groups with their committed offsets. Asks first, unless --yes."""
    connection = connect(bootstrap, client_config)
    found = existing_groups(connection, groups)
    for name, description in found.items():
        no_active_members(name, description)
    delete_all(
        connection,
        "group",
        list(found),
        connection.admin.delete_consumer_groups,
        with_what="committed offsets",
        yes=yes,
        as_json=as_json,
    )


commands.command()(members)
commands.command("delete-offsets")(delete_offsets)
commands.command("export")(export_offsets)
commands.command("import")(import_offsets)
