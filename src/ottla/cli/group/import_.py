"""`ottla group import`: commits the offsets that another group or cluster had."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import Failed
from ottla.cli.group.existing import no_active_members
from ottla.cli.group.moves import choose_partitions, is_share_group, move_group, offsets_of
from ottla.cli.options import AS_JSON, DRY_RUN, group_argument
from ottla.client.admin.groups import described_groups
from ottla.client.admin.offset_moves import plan_to
from ottla.client.admin.offsets_file import read_offsets


@command("import")
@group_argument()
@click.option("--file", "-f", metavar="PATH", help="Read this file instead of standard input.")
@DRY_RUN
@AS_JSON
@cluster_options
def import_offsets(
    cluster: Cluster, group: str, file: str | None, dry_run: bool, as_json: bool
) -> None:
    """Commit the offsets of lines such as `orders,0,42`. The group must have no active members.

    Creates the group if it does not exist. Other partitions keep their offsets.
    """
    wanted = read_offsets(text_of(file).splitlines())
    client = cluster.client
    choose_partitions(client, group, [f"{name}:{number}" for name, number in wanted], {})
    found = described_groups(client, [group])
    if group in found and not dry_run:
        no_active_members(found[group])
    existing = found.get(group)
    moves = plan_to(client, wanted, offsets_of(client, group, existing))
    is_share = is_share_group(existing)
    move_group(client, group, moves, dry_run=dry_run, as_json=as_json, is_share=is_share)


def text_of(file: str | None) -> str:
    """The file's text, or that of standard input. Raises Failed."""
    try:
        return sys.stdin.read() if file is None else Path(file).read_text()
    except OSError as error:
        raise Failed(f"cannot read {file}: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise Failed(f"{file or 'standard input'} is not UTF-8 text.") from None
