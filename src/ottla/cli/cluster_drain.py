"""Moves all replicas off a broker: plans the moves, requests them, and waits until they are
done.
"""

from __future__ import annotations

import operator
from collections import Counter
from typing import Any, Final

from ottla.cli.client import Connection
from ottla.cli.cluster_moves import (
    LOOK_PAUSE_S,
    current_assignments,
    live_racks,
    move_documents,
    wait_moved,
)
from ottla.cli.failures import Failed, unknown
from ottla.cli.plural import plural
from ottla.cli.polling import poll_until
from ottla.cli.screen import note, say, show_table
from ottla.client.admin.reassignments import reassign, reassignments
from ottla.client.topic_partition import TopicPartition
from ottla.controller.draining import DrainingError, drained

SETTLE_TIMEOUT_S: Final = 10.0
ADD_A_BROKER: Final = (
    "Nothing was moved. Add a broker first: ottla cluster add "
    "(in a cluster of `ottla cluster start`)."
)


def drain_broker(
    connection: Connection, broker_id: int, *, dry_run: bool, quiet: bool, timeout_s: float
) -> dict[str, Any]:
    """The document of what was moved (or would be, with --dry-run). Raises Failed."""
    connection.topics()  # fails sooner, and says more, if no broker answers
    under_way = reassignments(connection.client)
    assignments = current_assignments(connection, under_way)
    racks = live_racks(connection)
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
    moves = move_documents(assignments, targets)
    if not dry_run:
        if targets:
            reassign(connection.client, targets)
        # Also waits for moves that are already under way, such as those of an interrupted drain.
        waited = {
            TopicPartition(topic, index)
            for topic, partitions in targets.items()
            for index in partitions
        } | {place for place, each in under_way.items() if broker_id in each.removing}
        try:
            wait_moved(
                connection,
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
        verify(connection, broker_id)
    return {"broker": broker_id, "done": not dry_run, "moved": moves}


def verify(connection: Connection, broker_id: int) -> None:
    """Raises Failed unless the broker holds no replica: a cancelled move would leave some."""

    def look() -> list[str]:
        return [
            f"{name}-{number}"
            for name, topic in sorted(connection.topics().items())
            for number, each in sorted(topic.partitions.items())
            if broker_id in each.replicas
        ]

    # The broker that responds learns of the end shortly after the controller.
    left = poll_until(look, operator.not_, within_s=SETTLE_TIMEOUT_S, pause_s=LOOK_PAUSE_S)
    if left:
        raise Failed(
            f"broker {broker_id} still holds {plural(len(left), 'partition')}, such as "
            f"{left[0]}: they were created later, or their moves were cancelled.",
            f"To move them: ottla cluster drain {broker_id}",
        )


def show_drained(document: dict[str, Any]) -> None:
    """Print which replicas were moved to which brokers."""
    number, moved = document["broker"], document["moved"]
    if not moved:
        say(f"Broker {number} holds no replicas.")
        return
    gained = Counter(broker for each in moved for broker in set(each["to"]) - set(each["from"]))
    topics = len({each["topic"] for each in moved})
    did = "Moved" if document["done"] else "Would move"
    say(f"{did} {plural(len(moved), 'replica')} of {plural(topics, 'topic')} off broker {number}:")
    show_table(["to broker", "replicas"], sorted(gained.items()))
    if document["done"]:
        note(f"Broker {number} holds no replicas now. New topics may still place replicas on it.")
