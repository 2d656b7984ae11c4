"""Moves of replicas between brokers: which broker holds what now, and waiting for the end of a
reassignment.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from ottla.cli.client import Connection
from ottla.cli.failures import Failed
from ottla.cli.plural import plural
from ottla.cli.polling import poll_until
from ottla.cli.progress import Watch
from ottla.cli.rows import column, row, show_rows
from ottla.cli.screen import say
from ottla.client.admin.reassignments import Assignments, Reassignment, reassignments
from ottla.client.topic_partition import TopicPartition

LOOK_PAUSE_S: Final = 0.5
MAX_SHOWN: Final = 50


def current_assignments(
    connection: Connection, under_way: Mapping[TopicPartition, Reassignment]
) -> dict[str, list[list[int]]]:
    """Each topic's replicas by partition, without those that are being removed."""
    found: dict[str, list[list[int]]] = {}
    for name, topic in sorted(connection.topics().items()):
        rows = []
        for number, partition in sorted(topic.partitions.items()):
            moving = under_way.get(TopicPartition(name, number))
            leaving = moving.removing if moving is not None else ()
            rows.append([each for each in partition.replicas if each not in leaving])
        found[name] = rows
    return found


def live_racks(connection: Connection) -> dict[int, str | None]:
    """The live brokers with their racks."""
    described = connection.wait(
        connection.admin.describe_cluster(request_timeout=connection.answer_timeout_s),
        "describe the cluster",
    )
    return {node.id: node.rack for node in described.nodes}


def brokers_text(brokers: Sequence[int]) -> str:
    """`1 2 3`, for a cell of a table."""
    return " ".join(map(str, brokers))


@row
class Move:
    """A partition that gets other replicas."""

    topic: str
    partition: int
    from_: list[int] = column(cell=lambda each: brokers_text(each.from_))
    to: list[int] = column(cell=lambda each: brokers_text(each.to))

    @property
    def added(self) -> set[int]:
        """The brokers that get a replica."""
        return set(self.to) - set(self.from_)


def moves_between(
    assignments: Mapping[str, Sequence[Sequence[int]]], targets: Assignments
) -> list[Move]:
    """Each partition that gets other replicas."""
    return [
        Move(topic, index, list(assignments[topic][index]), list(replicas))
        for topic, partitions in sorted(targets.items())
        for index, replicas in sorted(partitions.items())
        if list(replicas) != list(assignments[topic][index])
    ]


def show_moves(moves: Sequence[Move]) -> None:
    """Print moves as a table, the first ones if they are many."""
    show_rows(moves[:MAX_SHOWN])
    if len(moves) > MAX_SHOWN:
        say(f"{len(moves) - MAX_SHOWN:,} more. To see all: --dry-run --json")


def wait_moved(
    connection: Connection,
    waited: Collection[TopicPartition],
    *,
    title: str,
    watch_hint: str,
    quiet: bool,
    timeout_s: float,
) -> None:
    """Wait until no reassignment of these partitions is under way. Raises Failed after
    `timeout_s`, with `watch_hint`.
    """
    places = set(waited)
    with Watch(title, len(places), wanted=not quiet) as watch:

        def look() -> set[TopicPartition]:
            left = places & reassignments(connection.client).keys()
            watch.at(len(places) - len(left))
            return left

        left = poll_until(look, operator.not_, within_s=timeout_s, pause_s=LOOK_PAUSE_S)
    if left:
        raise Failed(
            f"{plural(len(left), 'partition')} of {len(places):,} still moving after "
            f"{timeout_s:g} s; the brokers continue the move.",
            watch_hint,
        )
