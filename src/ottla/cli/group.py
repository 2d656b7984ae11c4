"""`ottla group`: list, describe, reset and delete consumer groups, and move their offsets."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

from ottla.cli.client import Connection, connect
from ottla.cli.deletion import delete_all
from ottla.cli.failures import unknown
from ottla.cli.group_documents import (
    committed_offsets,
    described_groups,
    group_document,
    no_active_members,
    show_group,
    state_name,
)
from ottla.cli.group_reset import (
    Target,
    apply,
    choose_partitions,
    parse_target,
    plan,
    show_moves,
)
from ottla.cli.group_transfer import LIST_HINT, export_offsets, import_offsets
from ottla.cli.options import (
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
from ottla.cli.screen import show_documents, show_json, show_list, write

commands = typer.Typer(help="List, describe, reset and delete consumer groups.")

NO_GROUPS = "No groups yet. Create one with: ottla consume TOPIC --group NAME"
CLEAR = "\x1b[H\x1b[J"
"""Of a terminal: the cursor to the top left, and everything after it erased."""
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
Every = Annotated[
    float,
    typer.Option("--every", min=0.2, metavar="SECONDS", help="How often --watch shows it."),
]


@commands.command("list")
def list_groups(
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """List groups with their states."""
    groups = connect(bootstrap, client_config).groups()
    rows = [
        {
            "group": str(group.group_id),
            "state": state_name(group.state),
            "type": str(group.type.name).lower(),
        }
        for group in groups
    ]
    show_list(["group", "state", "type"], rows, as_json=as_json, none=NO_GROUPS)


def existing_groups(connection: Connection, names: Iterable[str]) -> dict[str, Any]:
    """Descriptions by name. Raises Failed that names the first missing group."""
    wanted = list(dict.fromkeys(names))
    found = described_groups(connection, wanted)
    for name in wanted:
        if name not in found:
            known = [str(group.group_id) for group in connection.groups()]
            raise unknown("group", name, known, LIST_HINT)
    return found


@commands.command()
def describe(
    groups: SomeGroupNames = None,
    watch: WatchIt = False,
    every: Every = 2.0,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Show each partition's committed offset, lag and consumer."""
    connection = connect(bootstrap, client_config)
    show_groups(connection, groups, as_json=as_json, again=False)
    while watch:
        time.sleep(every)
        show_groups(connection, groups, as_json=as_json, again=True)


def show_groups(
    connection: Connection, groups: Sequence[str] | None, *, as_json: bool, again: bool
) -> None:
    """Print the present state, on a terminal in place of the last."""
    if groups:
        found = existing_groups(connection, groups)
    else:
        names = [str(group.group_id) for group in connection.groups()]
        found = described_groups(connection, names)
    documents = [group_document(connection, name, each) for name, each in found.items()]
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
    dry_run: DryRun = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Move a group's committed offsets. The group must have no active members."""
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
    if not dry_run:
        apply(connection, group, moves)
    if as_json:
        show_json({"group": group, "applied": not dry_run, "partitions": moves})
        return
    show_moves(moves, dry_run=dry_run)


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


commands.command("export")(export_offsets)
commands.command("import")(import_offsets)
