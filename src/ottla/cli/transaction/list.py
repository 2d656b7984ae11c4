"""`ottla transaction list`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import UsageFailed, unknown
from ottla.cli.options import AS_JSON
from ottla.cli.rows import column, emit, row
from ottla.cli.transaction.description import LIST_HINT
from ottla.cli.value_types import Age
from ottla.client.admin.hanging_transactions import OPEN
from ottla.client.admin.transactions import Transactions
from ottla.client.errors import RefusedError
from ottla.protocol.errors import ErrorCode

NO_TRANSACTIONS: Final = "No transactional ids. A producer with transactional.id creates one."
STATES: Final = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
)


@row
class ListedId:
    transactional_id: str
    coordinator: int
    state: str
    producer_id: int = column("producer")


@command("list")
@click.option(
    "--state",
    metavar="STATE",
    multiple=True,
    help=f"Only this state: {', '.join(STATES)}. Repeatable.",
)
@click.option(
    "--open-for",
    "open_for_ms",
    type=Age(),
    help="Only open transactions that began longer ago: 30s, 15m.",
)
@click.option(
    "--id-pattern",
    metavar="REGEX",
    help="Only transactional ids that match as a whole (RE2; Apache Kafka 4.1 and later).",
)
@AS_JSON
@cluster_options
def list_transactions(
    cluster: Cluster,
    state: Sequence[str],
    open_for_ms: int | None,
    id_pattern: str | None,
    as_json: bool,
) -> None:
    """List transactional ids with their states."""
    for name in state:
        if name not in STATES:
            raise unknown("state", name, STATES, f"Allowed: {', '.join(STATES)}")
    states = list(state)
    if open_for_ms is not None:
        # The filter alone also lets ids without a transaction through.
        states = [name for name in OPEN if not states or name in states]
        if not states:
            raise UsageFailed(
                f"--open-for allows only the states of open transactions: {', '.join(OPEN)}."
            )
    transactions = Transactions(cluster.client)
    duration_ms = -1 if open_for_ms is None else open_for_ms
    try:
        found = transactions.listed(states, (), duration_ms, id_pattern)
    except RefusedError as error:
        if error.code is not ErrorCode.invalid_regular_expression:
            raise
        raise UsageFailed(
            f"--id-pattern: {id_pattern!r} is not a regular expression.",
            "Brokers use RE2: https://github.com/google/re2/wiki/Syntax",
        ) from None
    is_filtered = bool(states) or id_pattern is not None
    none = f"No transactional id matches. {LIST_HINT}" if is_filtered else NO_TRANSACTIONS
    emit([ListedId(**each._asdict()) for each in found], as_json=as_json, none=none)
