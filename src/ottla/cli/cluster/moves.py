"""What the commands say of moves of replicas between brokers, and waiting for their end."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from ottla.cli.failures import Failed
from ottla.cli.progress import Watch
from ottla.cli.screen import say, show_table
from ottla.client.admin.reassignments import Move, await_moves
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.wording.plural import plural

MAX_SHOWN: Final = 50


def brokers_text(brokers: Sequence[int]) -> str:
    """`1 2 3`, for a cell of a table."""
    return " ".join(map(str, brokers))


def show_moves(moves: Sequence[Move]) -> None:
    """Print moves as a table, the first ones if they are many."""
    show_table(
        ["topic", "partition", "from", "to"],
        [
            [each.topic, each.partition, brokers_text(each.from_), brokers_text(each.to)]
            for each in moves[:MAX_SHOWN]
        ],
    )
    if len(moves) > MAX_SHOWN:
        say(f"{len(moves) - MAX_SHOWN:,} more. To see all: --dry-run --json")


def wait_moved(
    client: Client,
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
    with Watch(title, len(waited), wanted=not quiet) as watch:
        left = await_moves(client, waited, within_s=timeout_s, progress=watch.at)
    if left:
        raise Failed(
            f"{plural(len(left), 'partition')} of {len(waited):,} still moving after "
            f"{timeout_s:g} s; the brokers continue the move.",
            watch_hint,
        )
