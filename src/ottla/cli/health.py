"""`ottla health`: whether a cluster works, as an exit code for scripts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

import click

from ottla.cli.client import Connection
from ottla.cli.cluster.description import Description, description_of
from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import EXIT_FAILED
from ottla.cli.options import AS_JSON
from ottla.cli.plural import plural
from ottla.cli.rows import emit, row
from ottla.cli.screen import note, say
from ottla.cli.transaction.description import HangingTransaction, hanging_transaction
from ottla.cli.transaction.search import find_hanging
from ottla.client.admin.transactions import Transactions
from ottla.client.errors import ClientError

MAX_TIMEOUT_MS: Final = 15 * 60_000
"""transaction.max.timeout.ms by default: a transaction with a later write may just be long."""
HANGING: Final = "{} hanging: read_committed consumers and compaction stop before it"


@row
class Health:
    """A cluster's state: healthy, degraded or broken, with what is wrong. The hanging transactions
    are None if the brokers do not say.
    """

    state: str
    broken: list[str]
    degraded: list[str]
    brokers: int
    controller: int | None
    partitions: int
    hanging_transactions: list[HangingTransaction] | None

    def show(self) -> None:
        say(
            f"{self.state}: {plural(self.brokers, 'broker')}, "
            f"{plural(self.partitions, 'partition')}"
        )
        problems = self.broken + self.degraded
        for problem in problems:
            say(f"  {problem}")
        if problems:
            hanging = bool(self.hanging_transactions)
            note(f"To see which: {' and '.join(where_to_look(len(problems), hanging))}")


@command()
@click.option(
    "--allow-degraded",
    is_flag=True,
    help="Do not fail for what still works: brokers down, under-replicated partitions.",
)
@AS_JSON
@cluster_options
def health(cluster: Cluster, allow_degraded: bool, as_json: bool) -> int:
    """Check a cluster: exit code 0 if everything works, 1 if not.

    Checked are the controller, brokers that hold replicas, every partition, and hanging
    transactions.
    """
    described = description_of(cluster.connection)
    hanging = hanging_transactions(cluster.connection)
    broken = list(broken_parts(described))
    degraded = list(degraded_parts(described, len(hanging or ())))
    found = Health(
        "broken" if broken else "degraded" if degraded else "healthy",
        broken,
        degraded,
        described.live_brokers,
        described.controller,
        described.partitions,
        hanging,
    )
    emit(found, as_json=as_json)
    return EXIT_FAILED if broken or (degraded and not allow_degraded) else 0


def hanging_transactions(connection: Connection) -> list[HangingTransaction] | None:
    """As `ottla transaction hanging --json`; None if the brokers do not say: they are older than
    Apache Kafka 3.0, or none of them answers.
    """
    try:
        transactions = Transactions(connection.client)
        before_ms = int(time.time() * 1000) - MAX_TIMEOUT_MS
        found, _ = find_hanging(transactions, transactions.partitions(), before_ms)
    except ClientError:
        return None
    return [hanging_transaction(each) for each in found]


def broken_parts(cluster: Description) -> Iterator[str]:
    """What does not work now."""
    if cluster.controller is None:
        yield "there is no controller"
    elif cluster.controller_answers is False:
        yield f"the controller, broker {cluster.controller}, does not respond"
    if cluster.offline:
        yield f"{plural(len(cluster.offline), 'partition')} without a leader"
    short = [each for each in cluster.under_min_isr if each.leader is not None]
    if short:
        yield f"{plural(len(short), 'partition')} under min.insync.replicas reject acks=all"


def degraded_parts(cluster: Description, hanging: int) -> Iterator[str]:
    """What works, but may not survive the next failure."""
    for broker in cluster.brokers:
        if not broker.live:
            yield f"broker {broker.id} is down and holds {plural(broker.replicas, 'replica')}"
    bad = {
        (each.topic, each.partition)
        for partitions in (cluster.offline, cluster.under_min_isr)
        for each in partitions
    }
    behind = [each for each in cluster.under_replicated if (each.topic, each.partition) not in bad]
    if behind:
        yield f"{plural(len(behind), 'partition')} with fewer replicas in sync than assigned"
    if hanging:
        yield HANGING.format(plural(hanging, "transaction"))


def where_to_look(problems: int, hanging: bool) -> Iterator[str]:
    """The commands that show these problems, one of them perhaps hanging transactions."""
    if problems > hanging:
        yield "ottla cluster describe"
    if hanging:
        yield "ottla transaction hanging"
