"""`ottla transaction hanging`."""

from __future__ import annotations

import time

import click

from ottla.cli.command import command
from ottla.cli.complete import complete_topic
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import Failed, unknown
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit
from ottla.cli.screen import say
from ottla.cli.transaction.description import TOPIC_HINT, hanging_transaction
from ottla.cli.transaction.search import find_hanging
from ottla.cli.value_types import Age
from ottla.client.admin.transactions import Transactions
from ottla.journey.formatting import elapsed_said


@command()
@click.option(
    "--topic", "-t", metavar="TOPIC", shell_complete=complete_topic, help="Only this topic."
)
@click.option(
    "--written-before",
    "age_ms",
    type=Age(),
    default="15m",
    metavar="AGE",
    help="Leave out those with a later write: transaction.max.timeout.ms of the brokers.",
)
@AS_JSON
@cluster_options
def hanging(cluster: Cluster, topic: str | None, age_ms: int, as_json: bool) -> None:
    """Find open transactions that no coordinator will end."""
    before_ms = int(time.time() * 1000) - age_ms
    transactions = Transactions(cluster.connection.client)
    if topic is not None and topic not in transactions.topics:
        raise unknown("topic", topic, transactions.topics, TOPIC_HINT)
    found, why = find_hanging(transactions, transactions.partitions(topic), before_ms)
    none = f"No hanging transactions without a write in the last {elapsed_said(age_ms)}."
    rows = [hanging_transaction(each) for each in found]
    emit(rows, as_json=as_json, none="" if why else none)
    if rows and not as_json:
        first = rows[0]
        say(
            "read_committed consumers stop before the first offset, and compaction too. To end "
            f"one: ottla transaction abort --topic {first.topic} --partition {first.partition} "
            f"--producer {first.producer_id}"
        )
    if why:
        place, reason = next(iter(why.items()))
        raise Failed(f"{len(why)} partitions were not searched. {place}: {reason}.")
