"""`ottla group history`: why a group rebalanced."""

from __future__ import annotations

import json
import time
from typing import Any

import click

from ottla.cli.command import command
from ottla.cli.complete import complete_group
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.group.existing import LIST_HINT, unknown_group
from ottla.cli.options import AS_JSON, every_option
from ottla.cli.screen import note, say, show_json, write
from ottla.cli.value_types import WholeNumber
from ottla.client.admin.group_history import GroupHistory, group_history
from ottla.client.admin.groups import described_groups
from ottla.client.client import Client
from ottla.journey.formatting import format_moment
from ottla.journey.words.group_history import causes_texts, moved_text, moves_texts, outcome_text
from ottla.wording.plural import plural


@command()
@click.argument("group", metavar="GROUP", shell_complete=complete_group, help="A group.")
@click.option("--last", "-n", type=WholeNumber(1), default=20, help="How many entries to show.")
@click.option("--follow", "-f", is_flag=True, help="Show what happens from now on until Ctrl-C.")
@every_option(1.0, "How often --follow asks.")
@AS_JSON
@cluster_options
def history(
    cluster: Cluster, group: str, last: int, follow: bool, every_s: float, as_json: bool
) -> None:
    """Show when and why a group rebalanced, who caused it, and what moved.

    For groups of all kinds. Only Ottla's brokers know it.
    """
    client = cluster.client
    found = group_history(client, group)
    if not found.entries and group not in described_groups(client, [group]):
        raise unknown_group(client, group, LIST_HINT)
    for broker, why in found.unasked.items():
        note(f"broker {broker} did not answer: {why}")
    entries = found.entries[-last:]
    if as_json and not follow:
        show_json(entries)
        return
    if not entries:
        note(f"Nothing has happened in group {group!r} since its coordinator began.")
    for each in entries:
        show_entry(each, as_json=as_json)
    write("", flush=True)
    if follow:
        follow_history(client, group, found, every_s, as_json=as_json)


def follow_history(
    client: Client, group: str, found: GroupHistory, every_s: float, *, as_json: bool
) -> None:
    """Print what is new, until Ctrl-C. A rebalance is printed when it begins and when it ends."""
    shown = set(map(_key, found.entries))
    while True:
        time.sleep(every_s)
        entries = group_history(client, group).entries
        for each in entries:
            if _key(each) not in shown:
                show_entry(each, as_json=as_json)
        write("", flush=True)
        # A broker that does not answer for a while has not forgotten what was shown.
        answered = {each["broker"] for each in entries}
        shown = {key for key in shown if key[0] not in answered} | set(map(_key, entries))


def _key(entry: dict[str, Any]) -> tuple[int, int | None, int | None]:
    """The same of a rebalance under way, whatever is added to it."""
    number = entry["number"]
    return entry["broker"], number, entry["at_ms"] if number is None else None


def show_entry(entry: dict[str, Any], *, as_json: bool) -> None:
    """One entry in lines, or as a line of JSON."""
    if as_json:
        write(json.dumps(entry, ensure_ascii=False) + "\n")
        return
    say(f"{format_moment(entry['at_ms'])}  {outcome_text(entry)}")
    for each in causes_texts(entry):
        say(f"    {each}")
    moved = moved_text(entry)
    if not moved:
        return
    say(f"    {moved}")
    for each in moves_texts(entry):
        say(f"      {each}")
    if entry["moved"] is not None and not entry["is_complete"]:
        listed = plural(len(entry["moves"]), "move")
        say(f"      (not all is listed: the largest {listed})")
