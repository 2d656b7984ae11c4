"""`ottla group`: list, describe, reset and delete consumer groups."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

from ottla.cli.client import Connection, connect
from ottla.cli.complete import complete_topic
from ottla.cli.deletion import delete_all
from ottla.cli.failures import Failed, unknown
from ottla.cli.group_documents import (
    committed_offsets,
    described_groups,
    group_document,
    show_group,
    state_name,
)
from ottla.cli.group_reset import Target, apply, choose_partitions, parse_target, plan
from ottla.cli.options import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    ClientConfig,
    DryRun,
    GroupName,
    GroupNames,
    SomeGroupNames,
    Yes,
)
from ottla.cli.screen import note, show_documents, show_json, show_list, show_table, write

commands = typer.Typer(help="List, describe, reset and delete consumer groups.")

NO_GROUPS = "No groups yet. Create one with: ottla consume TOPIC --group NAME"
CLEAR = "\x1b[H\x1b[J"
"""Of a terminal: the cursor to the top left, and everything after it erased."""
LIST_HINT = "To list all groups: ottla group list"
Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        "-t",
        metavar="TOPIC[:0,1]",
        help="Only this topic (and these partitions). Repeatable.",
        autocompletion=complete_topic,
    ),
]
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


def readers(description: Any) -> str:
    """`1 member is`, `3 members are`."""
    count = len(description.members)
    return "1 member is" if count == 1 else f"{count} members are"


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
    topic: Topics = None,
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
    if group in found and found[group].members and not dry_run:
        raise Failed(
            f"{readers(found[group])} reading as group {group!r} now.",
            f"Stop the consumers first. To list them: ottla group describe {group}",
        )
    committed = {key: at.offset for key, at in committed_offsets(connection, group).items()}
    partitions = choose_partitions(connection, group, topic, committed)
    moves = plan(connection, target, partitions, committed)
    if not dry_run:
        apply(connection, group, moves)
    if as_json:
        show_json({"group": group, "applied": not dry_run, "partitions": moves})
        return
    show_table(
        ["topic", "partition", "from", "to"],
        [[move["topic"], move["partition"], move["before"], move["after"]] for move in moves],
    )
    for move in moves:
        if move["note"]:
            note(f"{move['topic']}-{move['partition']}: {move['note']}")
    if dry_run:
        note("Nothing was changed (--dry-run).")


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
        if description.members:
            raise Failed(
                f"{readers(description)} reading as group {name!r} now.",
                f"Stop the consumers first. To list them: ottla group describe {name}",
            )
    delete_all(
        connection,
        "group",
        list(found),
        connection.admin.delete_consumer_groups,
        with_what="committed offsets",
        yes=yes,
        as_json=as_json,
    )
