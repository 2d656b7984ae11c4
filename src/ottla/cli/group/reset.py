"""`ottla group reset`: moves a group's committed offsets."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import UsageFailed
from ottla.cli.group.existing import LIST_HINT, no_active_members, unknown_group
from ottla.cli.group.moves import (
    choose_partitions,
    confirm_moves,
    is_share_group,
    move_group,
    offsets_of,
)
from ottla.cli.options import AS_JSON, DRY_RUN, GROUP_TOPICS, YES, group_argument
from ottla.cli.screen import note
from ottla.cli.value_types import Time, WholeNumber
from ottla.client.admin.groups import described_groups
from ottla.client.admin.offset_moves import Target, plan


@command()
@group_argument()
@GROUP_TOPICS
@click.option("--to-earliest", is_flag=True, help="To the first record.")
@click.option("--to-latest", is_flag=True, help="To the end, after every record.")
@click.option("--to-offset", type=WholeNumber(0), help="To this offset.")
@click.option(
    "--to-time",
    "to_time_ms",
    type=Time(),
    help="To the first record at or after a time: 2026-01-31T12:00, ms, or an age (15m).",
)
@click.option(
    "--shift-by", type=WholeNumber(), help="Forward by N records, or back if N is negative."
)
@YES
@DRY_RUN
@AS_JSON
@cluster_options
def reset(
    cluster: Cluster,
    group: str,
    topic: Sequence[str],
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    to_time_ms: int | None,
    shift_by: int | None,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Move a group's committed offsets. The group must have no active members.

    Asks first if that moves several topics and --topic names none, unless --yes.
    """
    target = checked(Target(to_earliest, to_latest, to_offset, to_time_ms, shift_by), group)
    client = cluster.client
    found = described_groups(client, [group])
    if group not in found and not topic:
        raise unknown_group(client, group, f"{LIST_HINT}. To create it, give --topic.")
    if group in found and not dry_run:
        no_active_members(found[group])
    committed = offsets_of(client, group, found.get(group))
    topology = None if group not in found else found[group].topology
    # What a streams group writes for itself would be processed beside what it reads again.
    chosen = topic if topic or topology is None else topology.sources
    partitions = choose_partitions(client, group, chosen, committed)
    moves = plan(client, target, partitions, committed)
    if not (topic or yes or dry_run):
        confirm_moves(group, moves)
    move_group(
        client,
        group,
        moves,
        dry_run=dry_run,
        as_json=as_json,
        is_share=is_share_group(found.get(group)),
    )
    if topology is not None and topology.what_stays:
        note(topology.what_stays)
    if group not in found:  # a mistyped name would go unnoticed
        will = "would be" if dry_run else "was"
        note(f"There was no group {group!r}: it {will} created.")


def checked(target: Target, group: str) -> Target:
    """The target. Raises UsageFailed unless exactly one is given."""
    options = {
        "--to-earliest": target.earliest or None,
        "--to-latest": target.latest or None,
        "--to-offset": target.offset,
        "--to-time": target.at_ms,
        "--shift-by": target.shift,
    }
    given = [name for name, value in options.items() if value is not None]
    if len(given) != 1:
        raise UsageFailed(
            f"{' and '.join(given)} exclude each other." if given else "no target given.",
            f"Give one of {', '.join(options)}: ottla group reset {group} --to-earliest --dry-run",
        )
    return target
