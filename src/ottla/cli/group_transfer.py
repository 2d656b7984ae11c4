"""`ottla group export` and `ottla group import`: a group's offsets out of one group or cluster and
into another.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.client import connect
from ottla.cli.failures import Failed
from ottla.cli.group_documents import committed_offsets, described_groups, no_active_members
from ottla.cli.group_file import offsets_text, read_offsets
from ottla.cli.group_members import existing_groups
from ottla.cli.group_reset import carry_out, choose_partitions, plan_to
from ottla.cli.screen import show_json, write
from ottla.cli.typer_options import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    ClientConfig,
    DryRun,
    GroupName,
    GroupTopics,
)

File = Annotated[
    str | None,
    typer.Option("--file", "-f", metavar="PATH", help="Read this file instead of standard input."),
]


def export_offsets(
    group: GroupName,
    topic: GroupTopics = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Print a group's committed offsets, for `ottla group import` or Kafka's own script."""
    connection = connect(bootstrap, client_config)
    existing_groups(connection, [group])
    committed = {key: at.offset for key, at in committed_offsets(connection, group).items()}
    if topic:
        chosen = choose_partitions(connection, group, topic, committed)
        committed = {key: committed[key] for key in chosen if key in committed}
    if not as_json:
        write(offsets_text(committed))
        return
    show_json(
        [
            {"topic": key[0], "partition": key[1], "offset": offset}
            for key, offset in sorted(committed.items())
        ]
    )


def import_offsets(
    group: GroupName,
    file: File = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Commit the offsets of lines such as `orders,0,42`. The group must have no active members.

    Creates the group if it does not exist. Other partitions keep their offsets.
    """
    wanted = read_offsets(text_of(file).splitlines())
    connection = connect(bootstrap, client_config)
    choose_partitions(connection, group, [f"{name}:{number}" for name, number in wanted], {})
    found = described_groups(connection, [group])
    if group in found and not dry_run:
        no_active_members(group, found[group])
    committed = (
        {key: at.offset for key, at in committed_offsets(connection, group).items()}
        if group in found
        else {}
    )
    moves = plan_to(connection, wanted, committed)
    carry_out(connection, group, moves, dry_run=dry_run, as_json=as_json)


def text_of(file: str | None) -> str:
    """The file's text, or that of standard input. Raises Failed."""
    try:
        return sys.stdin.read() if file is None else Path(file).read_text()
    except OSError as error:
        raise Failed(f"cannot read {file}: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise Failed(f"{file or 'standard input'} is not UTF-8 text.") from None
