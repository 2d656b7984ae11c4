"""`ottla cluster reassign`: gives partitions other replicas (KIP-455), lists moves, cancels them.

As in `kafka-reassign-partitions.sh`, but without a file: the plan is shown first, and the brokers
carry it out. The command only waits, so it may end at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from ottla.cli.cluster.moves import brokers_text, show_moves, wait_moved
from ottla.cli.cluster.options import TIMEOUT
from ottla.cli.command import command
from ottla.cli.confirmation import confirm
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.existing import check_brokers, existing_topics
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.options import (
    AS_JSON,
    DRY_RUN,
    OF_PARTITION,
    REPLICATION_FACTOR,
    YES,
    topics_argument,
)
from ottla.cli.rows import column, emit, row
from ottla.cli.screen import note, say
from ottla.cli.topic.assignment import read_assignment
from ottla.client.admin.reassignment_file import read_reassignments
from ottla.client.admin.reassignment_plan import Targets, check_partitions, spread_out
from ottla.client.admin.reassignments import (
    Move,
    Reassignment,
    Replicas,
    await_replicas,
    cancel_reassignments,
    current_assignments,
    moves_between,
    reassignments,
)
from ottla.client.admin.reassignments import reassign as request_moves
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.wording.plural import plural

FORMS: Final = (
    "For example: ottla cluster reassign TOPIC --replication-factor 3, or --brokers 1,2,3; "
    "--list shows what moves now."
)
WATCH_HINT: Final = "To watch it: ottla cluster reassign --list"


@row
class UnderWay:
    """A partition that is being moved."""

    topic: str
    partition: int
    replicas: list[int] = column(cell=lambda each: brokers_text(each.replicas))
    adding: list[int] = column(cell=lambda each: brokers_text(each.adding))
    removing: list[int] = column(cell=lambda each: brokers_text(each.removing))


@row
class Cancelled:
    """A partition whose move was cancelled, or with --dry-run would be."""

    topic: str
    partition: int
    cancelled: bool


@row
class Reassigned:
    """What was requested, and whether all of it is done."""

    requested: bool
    done: bool
    moved: list[Move]


@command()
@topics_argument(required=False)
@click.option(
    "--brokers",
    metavar="1,2,3",
    help="Spread the topics' replicas evenly over these brokers.",
)
@REPLICATION_FACTOR
@click.option(
    "--assign",
    metavar="BROKERS",
    help="The brokers of each partition, such as 1:2,2:3 (the first is the preferred leader).",
)
@OF_PARTITION
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="The moves, as for kafka-reassign-partitions.sh (JSON).",
)
@click.option("--list", "list_moves", is_flag=True, help="Show what moves now.")
@click.option("--cancel", is_flag=True, help="Cancel what moves now, of the topics or of all.")
@click.option("--no-wait", is_flag=True, help="Do not wait until it is done.")
@DRY_RUN
@TIMEOUT
@YES
@AS_JSON
@cluster_options
def reassign(
    cluster: Cluster,
    topics: Sequence[str],
    brokers: str | None,
    replication_factor: int | None,
    assign: str | None,
    partition: Sequence[int],
    file: Path | None,
    list_moves: bool,
    cancel: bool,
    no_wait: bool,
    dry_run: bool,
    timeout: float,
    yes: bool,
    as_json: bool,
) -> None:
    """Give partitions other replicas. Shows the plan and asks first, unless --yes."""
    given = {
        "--assign": assign is not None,
        "--file": file is not None,
        "--list": list_moves,
        "--cancel": cancel,
        "--brokers": brokers is not None,
        "--replication-factor": replication_factor is not None,
    }
    check_together(given, topics, partition)
    wanted_brokers = read_brokers(brokers)
    client = cluster.client
    existing_topics(client, topics)  # says at once if no broker answers
    under_way = reassignments(client)
    if list_moves or cancel:
        chosen = {
            partition: each for partition, each in under_way.items() if is_chosen(partition, topics)
        }
        if list_moves:
            show_under_way(chosen, as_json=as_json)
        else:
            cancel_moves(client, chosen, dry_run=dry_run, yes=yes, as_json=as_json)
        return
    assignments = current_assignments(client, under_way)
    live = {number: each.rack for number, each in client.metadata([]).brokers.items()}
    if file is not None:
        targets = read_reassignments(file)
        check_partitions(assignments, targets)
    elif assign is not None:
        targets = assigned(assign, next(iter(topics), ""), partition, assignments)
    else:
        targets = spread_out(
            topics, partition, assignments, live, wanted_brokers, replication_factor
        )
    named = {broker for each in targets.values() for row in each.values() for broker in row}
    check_brokers(sorted(named.union(wanted_brokers or ())), live)  # others could copy nothing
    moves = moves_between(assignments, targets)
    if not as_json and moves:
        show_moves(moves)
    done = carry_out(
        client,
        moves,
        dry_run=dry_run,
        wait=not no_wait,
        quiet=as_json,
        yes=yes,
        timeout_s=timeout,
    )
    if as_json:
        emit(Reassigned(bool(moves) and not dry_run, done, moves), as_json=True)


def read_brokers(text: str | None) -> list[int] | None:
    """`1,2,3` as numbers. Raises UsageFailed."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() for word in words):
        raise UsageFailed(f"--brokers must be broker ids, not {text!r}.", "For example: 1,2,3")
    return sorted({int(word) for word in words})


def assigned(
    text: str,
    topic: str,
    partition: Sequence[int] | None,
    assignments: Replicas,
) -> Targets:
    """The targets of `--assign`: of all partitions, or of the named ones in that order."""
    rows = read_assignment(text)
    indexes = list(partition or range(len(assignments[topic])))
    if len(rows) != len(indexes):
        raise UsageFailed(
            f"--assign names the brokers of {plural(len(rows), 'partition')}, "
            f"but {len(indexes)} {'is' if len(indexes) == 1 else 'are'} to be moved.",
            "Name as many with --partition N, or the brokers of all partitions.",
        )
    targets = {topic: dict(zip(indexes, map(tuple, rows), strict=True))}
    check_partitions(assignments, targets)
    return targets


def check_together(
    given: Mapping[str, bool], topics: Sequence[str], partition: Sequence[int]
) -> None:
    """Reject options that contradict each other, and a request without a target."""
    named = [name for name, is_given in given.items() if is_given]
    if not named:
        raise UsageFailed("no target given.", FORMS)
    if len(named) > 1 and set(named) != {"--brokers", "--replication-factor"}:
        raise UsageFailed(f"{named[0]} and {named[1]} exclude each other.", FORMS)
    (first, *_) = named
    if first == "--file" and (topics or partition):
        raise UsageFailed("--file names its topics and partitions itself.")
    if first in ("--brokers", "--replication-factor", "--assign") and not topics:
        raise UsageFailed(f"{first} needs a topic.", FORMS)
    if (first == "--assign" or partition) and len(topics) != 1:
        name = "--assign" if first == "--assign" else "--partition"
        raise UsageFailed(f"{name} needs one topic.", FORMS)
    if first in ("--list", "--cancel") and partition:
        raise UsageFailed(f"{first} and --partition exclude each other.")


def is_chosen(partition: TopicPartition, topics: Sequence[str]) -> bool:
    return not topics or partition[0] in topics


def carry_out(
    client: Client,
    moves: Sequence[Move],
    *,
    dry_run: bool,
    wait: bool,
    quiet: bool,
    yes: bool,
    timeout_s: float,
) -> bool:
    """Ask the user, request the moves and wait; returns whether they are done."""
    if not moves:
        note("Nothing to move: the partitions have these replicas.")
        return True
    if dry_run:
        note("Nothing was changed (--dry-run).")
        return False
    copies = sum(len(each.added) for each in moves)
    confirm(
        f"Change {plural(len(moves), 'partition')} ({plural(copies, 'replica')} to copy)?",
        yes=yes,
    )
    targets: Targets = {}
    for each in moves:
        targets.setdefault(each.topic, {})[each.partition] = tuple(each.to)
    request_moves(client, targets)
    if not wait:
        note(f"The brokers move the replicas. {WATCH_HINT}")
        return False
    try:
        wait_moved(
            client,
            [TopicPartition(each.topic, each.partition) for each in moves],
            title="Moving replicas",
            watch_hint=WATCH_HINT,
            quiet=quiet,
            timeout_s=timeout_s,
        )
    except KeyboardInterrupt:
        note(f"The brokers continue the move. {WATCH_HINT}; to cancel it: --cancel")
        raise
    verify(client, targets)
    if not quiet:
        say(f"Changed {plural(len(moves), 'partition')}; {plural(copies, 'replica')} copied.")
    return True


def verify(client: Client, targets: Targets) -> None:
    """Raises Failed unless the partitions have the replicas: a move may have been cancelled."""

    def is_wrong(moved: TopicPartition, replicas: Sequence[int]) -> bool:
        wanted = targets.get(moved.topic, {}).get(moved.partition)
        return wanted is not None and list(replicas) != list(wanted)

    left = await_replicas(client, is_wrong)
    if left:
        moved, found = next(iter(left.items()))
        raise Failed(
            f"{plural(len(left), 'partition')} did not move, such as {moved}: its replicas are "
            f"{found}, not {list(targets[moved.topic][moved.partition])}.",
            "Another command may have cancelled or replaced the move.",
        )


def show_under_way(moving: Mapping[TopicPartition, Reassignment], *, as_json: bool) -> None:
    """Print what moves now."""
    rows = [
        UnderWay(*moved, list(each.replicas), list(each.adding), list(each.removing))
        for moved, each in sorted(moving.items())
    ]
    emit(rows, as_json=as_json, none="No reassignment is under way.")


def cancel_moves(
    client: Client,
    moving: Mapping[TopicPartition, Reassignment],
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Cancel these moves: the replicas that are being added are given up."""
    if not as_json or not moving:
        show_under_way(moving, as_json=as_json)
    if not moving:
        return
    if not dry_run:
        confirm(
            f"Cancel the moves of {plural(len(moving), 'partition')}?",
            yes=yes,
            refused="Nothing was cancelled.",
        )
        cancel_reassignments(client, moving)
    if as_json:
        emit([Cancelled(*moved, not dry_run) for moved in sorted(moving)], as_json=True)
    elif dry_run:
        note("Nothing was changed (--dry-run).")
    else:
        say(f"Cancelled the moves of {plural(len(moving), 'partition')}.")
