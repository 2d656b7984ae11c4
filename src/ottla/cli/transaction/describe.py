"""`ottla transaction describe`."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit
from ottla.cli.transaction.description import LIST_HINT, existing, show_transaction
from ottla.client.admin.hanging_transactions import OPEN
from ottla.client.admin.transaction_states import transaction_description
from ottla.client.admin.transactions import Transactions


@command()
@click.argument(
    "transactional_ids",
    metavar="[ID]...",
    nargs=-1,
    help="Transactional ids. Default: those that are open.",
)
@AS_JSON
@cluster_options
def describe(cluster: Cluster, transactional_ids: Sequence[str], as_json: bool) -> None:
    """Show a transaction's producer, age and partitions, and what ends it."""
    transactions = Transactions(cluster.client)
    if transactional_ids:
        found = existing(transactions, transactional_ids)
    else:
        found = transactions.described(each.transactional_id for each in transactions.listed(OPEN))
    partitions = {partition for each in found.values() for partition in each.partitions}
    producers, why = transactions.open_producers(sorted(partitions))
    now_ms = int(time.time() * 1000)
    emit(
        [transaction_description(each, producers, why, now_ms) for each in found.values()],
        as_json=as_json,
        none=f"No open transactions. {LIST_HINT}",
        show_each=show_transaction,
    )
