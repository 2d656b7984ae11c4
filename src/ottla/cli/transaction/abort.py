"""`ottla transaction abort`: ends an open transaction, or one that hangs in a partition."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

import click

from ottla.cli.command import command
from ottla.cli.complete import complete_topic
from ottla.cli.confirmation import confirm
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import Failed, UsageFailed, unknown
from ottla.cli.options import AS_JSON, YES
from ottla.cli.rows import emit, row
from ottla.cli.screen import say
from ottla.cli.transaction.description import TOPIC_HINT, existing
from ottla.cli.value_types import MAX_INT32, WholeNumber
from ottla.client.admin.hanging_transactions import (
    ONGOING,
    PREPARED,
    HangingTransaction,
    coordinated,
    hanging_transaction,
    has_partition,
)
from ottla.client.admin.transactions import OpenProducer, Transactions
from ottla.client.errors import RefusedError
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.wording.plural import plural

REFUSED: Final = "Nothing was aborted."
WAYS: Final = (
    "Give a transactional id (ottla transaction abort ID), or --topic, --partition and --producer "
    "as `ottla transaction hanging` prints them."
)


@row
class AbortedTransaction:
    """The transaction of a transactional id."""

    transactional_id: str
    aborted: bool = True

    def show(self) -> None:
        say(f"Aborted the transaction of {self.transactional_id}. Its producer is fenced.")


@row
class AbortedInPartition(HangingTransaction):
    """A transaction that hung."""

    aborted: bool = True

    def show(self) -> None:
        say(
            f"Aborted the transaction of producer {self.producer_id} in "
            f"{self.topic}-{self.partition}."
        )


@command()
@click.argument(
    "transactional_id",
    metavar="[ID]",
    required=False,
    help="The transactional id whose transaction to abort.",
)
@click.option(
    "--topic",
    "-t",
    metavar="TOPIC",
    shell_complete=complete_topic,
    help="The topic of a hanging transaction.",
)
@click.option("--partition", "-p", type=WholeNumber(0, MAX_INT32), help="Its partition.")
@click.option("--producer", type=WholeNumber(0), metavar="ID", help="Its producer id.")
@YES
@AS_JSON
@cluster_options
def abort(
    cluster: Cluster,
    transactional_id: str | None,
    topic: str | None,
    partition: int | None,
    producer: int | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Abort an open transaction and fence its producer; or one that hangs in a partition.

    Asks first, unless --yes.
    """
    if transactional_id is not None and (topic, partition, producer) == (None, None, None):
        transactions = Transactions(cluster.client)
        abort_by_id(transactions, transactional_id, yes=yes)
        emit(AbortedTransaction(transactional_id), as_json=as_json)
    elif None not in (topic, partition, producer) and transactional_id is None:
        assert topic is not None
        assert partition is not None
        assert producer is not None
        transactions = Transactions(cluster.client)
        each = abort_in_partition(transactions, TopicPartition(topic, partition), producer, yes=yes)
        emit(AbortedInPartition(**asdict(hanging_transaction(each))), as_json=as_json)
    else:
        raise UsageFailed("which transaction?", WAYS)


def abort_by_id(transactions: Transactions, transactional_id: str, *, yes: bool) -> None:
    """As a new producer with this transactional id does. Raises Failed."""
    described = existing(transactions, [transactional_id])[transactional_id]
    if described.state in PREPARED:
        raise Failed(
            f"the outcome of {transactional_id!r} is decided ({described.state}).",
            f"To see what is left: ottla transaction describe {transactional_id}",
        )
    if described.state != ONGOING:
        raise Failed(
            f"{transactional_id!r} has no open transaction ({described.state}).",
            "To list those that are open: ottla transaction describe",
        )
    partitions = plural(len(described.partitions), "partition")
    confirm(
        f"Abort the transaction of {transactional_id} in {partitions}, and fence its producer?",
        yes=yes,
        refused=REFUSED,
    )
    try:
        transactions.fence(transactional_id, described.timeout_ms)
    except RefusedError as error:
        if error.code is not ErrorCode.concurrent_transactions:
            raise
        raise Failed(
            f"the transaction of {transactional_id!r} is not aborted yet.",
            f"To see what is left: ottla transaction describe {transactional_id}",
        ) from None


def abort_in_partition(
    transactions: Transactions, topic_partition: TopicPartition, producer_id: int, *, yes: bool
) -> OpenProducer:
    """Ends a transaction that its coordinator does not end. Raises Failed."""
    topic, partition = topic_partition
    if topic not in transactions.topics:
        raise unknown("topic", topic, transactions.topics, TOPIC_HINT)
    if topic_partition not in transactions.partitions(topic):
        raise Failed(f"{topic} has no partition {partition}.", f"ottla topic describe {topic}")
    producers, why = transactions.open_producers([topic_partition])
    if why:
        raise Failed(f"cannot read the producers of {topic}-{partition}: {why[topic_partition]}.")
    found = [each for each in producers if each.producer_id == producer_id]
    if not found:
        raise Failed(
            f"producer {producer_id} has no open transaction in {topic}-{partition}.",
            f"To find those that hang: ottla transaction hanging --topic {topic}",
        )
    (each,) = found
    ids, described = coordinated(transactions, found)
    name = ids.get(producer_id, "")
    if has_partition(described.get(name), each):
        # A marker of ours would abort a part of a transaction that may be committed yet.
        raise Failed(
            f"the transaction does not hang: the coordinator of {name!r} will end it.",
            f"To abort it as a whole: ottla transaction abort {name}",
        )
    confirm(
        f"Abort the records of producer {producer_id} in {topic}-{partition} from offset "
        f"{each.first_offset} on? read_committed consumers will never get them.",
        yes=yes,
        refused=REFUSED,
    )
    transactions.abort_in_partition(each)
    return each
