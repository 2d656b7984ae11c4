"""`ottla cluster drain`: plans the moves, requests them, and waits until they are done."""

from __future__ import annotations

from collections import Counter
from typing import Final

import click

from ottla.cli.cluster.moves import wait_moved
from ottla.cli.cluster.options import TIMEOUT
from ottla.cli.command import command
from ottla.cli.complete import complete_broker
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import Failed, unknown
from ottla.cli.options import AS_JSON, DRY_RUN
from ottla.cli.rows import emit, row
from ottla.cli.screen import note, say, show_table
from ottla.cli.value_types import MAX_INT32, WholeNumber
from ottla.client.admin.reassignments import (
    Move,
    await_replicas,
    current_assignments,
    moves_between,
    reassign,
    reassignments,
)
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.controller.draining import DrainingError, drained
from ottla.wording.plural import plural

ADD_A_BROKER: Final = (
    "Nothing was moved. Add a broker first: ottla cluster add "
    "(in a cluster of `ottla cluster start`)."
)


@row
class Drained:
    """What was moved off a broker, or would be: `done` is False with --dry-run."""

    broker: int
    done: bool
    moved: list[Move]

    def show(self) -> None:
        if not self.moved:
            say(f"Broker {self.broker} holds no replicas.")
            return
        gained = Counter(broker for each in self.moved for broker in each.added)
        topics = len({each.topic for each in self.moved})
        did = "Moved" if self.done else "Would move"
        replicas = plural(len(self.moved), "replica")
        say(f"{did} {replicas} of {plural(topics, 'topic')} off broker {self.broker}:")
        show_table(["to broker", "replicas"], sorted(gained.items()))
        if self.done:
            note(
                f"Broker {self.broker} holds no replicas now. New topics may still place replicas "
                "on it."
            )


@command()
@click.argument(
    "broker",
    type=WholeNumber(0, MAX_INT32),
    metavar="BROKER",
    shell_complete=complete_broker,
    help="The broker's id.",
)
@DRY_RUN
@TIMEOUT
@AS_JSON
@cluster_options
def drain(cluster: Cluster, broker: int, dry_run: bool, timeout: float, as_json: bool) -> None:
    """Move all replicas off a broker, and wait until they have moved."""
    done = drain_broker(cluster.client, broker, dry_run=dry_run, quiet=as_json, timeout_s=timeout)
    emit(done, as_json=as_json)


def drain_broker(
    client: Client, broker_id: int, *, dry_run: bool, quiet: bool, timeout_s: float
) -> Drained:
    """What was moved (or would be, with --dry-run). Raises Failed."""
    client.metadata([])  # fails sooner, and says more, if no broker answers
    under_way = reassignments(client)
    assignments = current_assignments(client, under_way)
    racks = {number: each.rack for number, each in client.metadata([]).brokers.items()}
    holders = {number for each in assignments.values() for row in each for number in row}
    if broker_id not in racks.keys() | holders:
        raise unknown(
            "broker",
            str(broker_id),
            map(str, sorted(racks)),
            "To list all brokers: ottla cluster describe",
        )
    try:
        targets = drained(broker_id, racks, assignments)
    except DrainingError as error:
        raise Failed(str(error), ADD_A_BROKER) from None
    moves = moves_between(assignments, targets)
    if not dry_run:
        if targets:
            reassign(client, targets)
        # Also waits for moves that are already under way, such as those of an interrupted drain.
        waited = {
            TopicPartition(topic, index)
            for topic, partitions in targets.items()
            for index in partitions
        } | {partition for partition, each in under_way.items() if broker_id in each.removing}
        try:
            wait_moved(
                client,
                waited,
                title=f"Draining broker {broker_id}",
                watch_hint=f"To watch it: ottla cluster drain {broker_id}",
                quiet=quiet,
                timeout_s=timeout_s,
            )
        except KeyboardInterrupt:
            note("The brokers continue the move. To watch it:")
            note(f"  ottla cluster drain {broker_id}")
            raise
        verify(client, broker_id)
    return Drained(broker_id, not dry_run, moves)


def verify(client: Client, broker_id: int) -> None:
    """Raises Failed unless the broker holds no replica: a cancelled move would leave some."""
    left = await_replicas(client, lambda _, replicas: broker_id in replicas)
    if left:
        raise Failed(
            f"broker {broker_id} still holds {plural(len(left), 'partition')}, such as "
            f"{next(iter(left))}: they were created later, or their moves were cancelled.",
            f"To move them: ottla cluster drain {broker_id}",
        )
