"""`ottla cluster reassign`: gives partitions other replicas (KIP-455), lists moves, cancels them.

As in `kafka-reassign-partitions.sh`, but without a file: the plan is shown first, and the brokers
carry it out. The command only waits, so it may end at any time.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from ottla.cli.client import Connection
from ottla.cli.cluster.moves import (
    LOOK_PAUSE_S,
    Move,
    brokers_text,
    current_assignments,
    live_racks,
    moves_between,
    show_moves,
    wait_moved,
)
from ottla.cli.cluster.options import TIMEOUT
from ottla.cli.cluster.reassignment_file import read_reassignments
from ottla.cli.cluster.reassignment_plan import (
    Targets,
    assigned,
    check_brokers,
    check_places,
    read_brokers,
    spread_out,
)
from ottla.cli.command import command
from ottla.cli.confirmation import confirm
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.options import (
    AS_JSON,
    DRY_RUN,
    OF_PARTITION,
    REPLICATION_FACTOR,
    YES,
    topics_argument,
)
from ottla.cli.plural import plural
from ottla.cli.polling import poll_until
from ottla.cli.rows import column, emit, row
from ottla.cli.screen import note, say
from ottla.client.admin.reassignments import (
    Reassignment,
    cancel_reassignments,
    reassignments,
)
from ottla.client.admin.reassignments import reassign as request_moves
from ottla.client.topic_partition import TopicPartition

FORMS: Final = (
    "For example: ottla cluster reassign TOPIC --replication-factor 3, or --brokers 1,2,3; "
    "--list shows what moves now."
)
WATCH_HINT: Final = "To watch it: ottla cluster reassign --list"
SETTLE_TIMEOUT_S: Final = 10.0


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
    connection = cluster.connection
    connection.existing_topics(topics)  # says at once if no broker answers
    under_way = reassignments(connection.client)
    if list_moves or cancel:
        chosen = {place: each for place, each in under_way.items() if is_chosen(place, topics)}
        if list_moves:
            show_under_way(chosen, as_json=as_json)
        else:
            cancel_moves(connection, chosen, dry_run=dry_run, yes=yes, as_json=as_json)
        return
    assignments = current_assignments(connection, under_way)
    live = live_racks(connection)
    if file is not None:
        targets = read_reassignments(file)
        check_places(assignments, targets)
    elif assign is not None:
        targets = assigned(assign, next(iter(topics), ""), partition, assignments)
    else:
        targets = spread_out(
            topics, partition, assignments, live, wanted_brokers, replication_factor
        )
    check_brokers(targets, wanted_brokers or (), live)
    moves = moves_between(assignments, targets)
    if not as_json and moves:
        show_moves(moves)
    done = carry_out(
        connection,
        moves,
        dry_run=dry_run,
        wait=not no_wait,
        quiet=as_json,
        yes=yes,
        timeout_s=timeout,
    )
    if as_json:
        emit(Reassigned(bool(moves) and not dry_run, done, moves), as_json=True)


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


def is_chosen(place: TopicPartition, topics: Sequence[str]) -> bool:
    return not topics or place[0] in topics


def carry_out(
    connection: Connection,
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
        what_else="To move without confirmation, add --yes.",
        refused="Nothing was changed.",
    )
    targets: Targets = {}
    for each in moves:
        targets.setdefault(each.topic, {})[each.partition] = tuple(each.to)
    request_moves(connection.client, targets)
    if not wait:
        note(f"The brokers move the replicas. {WATCH_HINT}")
        return False
    try:
        wait_moved(
            connection,
            [TopicPartition(each.topic, each.partition) for each in moves],
            title="Moving replicas",
            watch_hint=WATCH_HINT,
            quiet=quiet,
            timeout_s=timeout_s,
        )
    except KeyboardInterrupt:
        note(f"The brokers continue the move. {WATCH_HINT}; to cancel it: --cancel")
        raise
    verify(connection, targets)
    if not quiet:
        say(f"Changed {plural(len(moves), 'partition')}; {plural(copies, 'replica')} copied.")
    return True


def verify(connection: Connection, targets: Mapping[str, Mapping[int, Sequence[int]]]) -> None:
    """Raises Failed unless the partitions have the replicas: a move may have been cancelled."""

    def look() -> list[tuple[str, list[int], list[int]]]:
        topics = connection.topics()
        return [
            (f"{topic}-{index}", list(topics[topic].partitions[index].replicas), list(replicas))
            for topic, partitions in targets.items()
            for index, replicas in partitions.items()
            if topic in topics
            if list(topics[topic].partitions[index].replicas) != list(replicas)
        ]

    # The broker that responds learns of the end shortly after the controller.
    left = poll_until(look, operator.not_, within_s=SETTLE_TIMEOUT_S, pause_s=LOOK_PAUSE_S)
    if left:
        place, found, wanted = left[0]
        raise Failed(
            f"{plural(len(left), 'partition')} did not move, such as {place}: its replicas are "
            f"{found}, not {wanted}.",
            "Another command may have cancelled or replaced the move.",
        )


def show_under_way(moving: Mapping[TopicPartition, Reassignment], *, as_json: bool) -> None:
    """Print what moves now."""
    rows = [
        UnderWay(*place, list(each.replicas), list(each.adding), list(each.removing))
        for place, each in sorted(moving.items())
    ]
    emit(rows, as_json=as_json, none="No reassignment is under way.")


def cancel_moves(
    connection: Connection,
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
            what_else="To cancel without confirmation, add --yes.",
            refused="Nothing was cancelled.",
        )
        cancel_reassignments(connection.client, moving)
    if as_json:
        emit([Cancelled(*place, not dry_run) for place in sorted(moving)], as_json=True)
    elif dry_run:
        note("Nothing was changed (--dry-run).")
    else:
        say(f"Cancelled the moves of {plural(len(moving), 'partition')}.")
