"""`ottla transaction hanging`."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from ottla.cli.command import command
from ottla.cli.complete import complete_topic
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import Failed, unknown
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit
from ottla.cli.screen import say, show_table
from ottla.cli.transaction.description import TOPIC_HINT, moment
from ottla.cli.value_types import Age
from ottla.client.admin.hanging_transactions import (
    HangingTransaction,
    find_hanging,
    hanging_transaction,
)
from ottla.client.admin.transactions import Transactions
from ottla.journey.formatting import format_elapsed


@command()
@click.option(
    "--topic", "-t", metavar="TOPIC", shell_complete=complete_topic, help="Only this topic."
)
@click.option(
    "--written-before",
    "age_ms",
    type=Age(),
    default="15m",
    help="Leave out those with a later write: transaction.max.timeout.ms of the brokers.",
)
@AS_JSON
@cluster_options
def hanging(cluster: Cluster, topic: str | None, age_ms: int, as_json: bool) -> None:
    """Find open transactions that no coordinator will end."""
    before_ms = int(time.time() * 1000) - age_ms
    transactions = Transactions(cluster.client)
    if topic is not None and topic not in transactions.topics:
        raise unknown("topic", topic, transactions.topics, TOPIC_HINT)
    found, why = find_hanging(transactions, transactions.partitions(topic), before_ms)
    none = f"No hanging transactions without a write in the last {format_elapsed(age_ms)}."
    rows = [hanging_transaction(each) for each in found]
    emit(rows, as_json=as_json, none="" if why else none, show=show_hanging)
    if rows and not as_json:
        first = rows[0]
        say(
            "read_committed consumers stop before the first offset, and compaction too. To end "
            f"one: ottla transaction abort --topic {first.topic} --partition {first.partition} "
            f"--producer {first.producer_id}"
        )
    if why:
        partition, reason = next(iter(why.items()))
        raise Failed(f"{len(why)} partitions were not searched. {partition}: {reason}.")


def show_hanging(rows: Sequence[HangingTransaction]) -> None:
    show_table(
        ["topic", "partition", "first offset", "producer", "epoch", "last write"],
        [
            [
                each.topic,
                each.partition,
                each.first_offset,
                each.producer_id,
                each.producer_epoch,
                moment(each.last_write_ms),
            ]
            for each in rows
        ],
    )
