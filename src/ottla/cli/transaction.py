"""`ottla transaction`: list and describe transactional ids, find and end hanging transactions."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from ottla.cli.client import connect
from ottla.cli.complete import complete_topic
from ottla.cli.failures import EXIT_FAILED, Failed, UsageFailed, unknown
from ottla.cli.hanging_transactions import coordinated, find_hanging
from ottla.cli.positions import AGO, UNIT_MS
from ottla.cli.screen import ask, note, say, show_documents, show_json, show_list
from ottla.cli.transaction_documents import (
    ONGOING,
    OPEN,
    PREPARED,
    hanging_document,
    has_partition,
    show_hanging,
    show_transaction,
    transaction_document,
)
from ottla.cli.typer_options import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, ClientConfig, Yes
from ottla.client.admin.transactions import DescribedTransaction, OpenProducer, Transactions
from ottla.client.errors import RefusedError
from ottla.client.topic_partition import TopicPartition
from ottla.journey.formatting import elapsed_said
from ottla.protocol.errors import ErrorCode

commands = typer.Typer(help="List and describe transactions, and end those that hang.")

NO_TRANSACTIONS = "No transactional ids. A producer with transactional.id creates one."
LIST_HINT = "To list all: ottla transaction list"
TOPIC_HINT = "To list all topics: ottla topic list"
STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
WAYS = (
    "Give a transactional id (ottla transaction abort ID), or --topic, --partition and --producer "
    "as `ottla transaction hanging` prints them."
)
States = Annotated[
    list[str] | None,
    typer.Option(
        "--state", metavar="STATE", help=f"Only this state: {', '.join(STATES)}. Repeatable."
    ),
]
OpenFor = Annotated[
    str | None,
    typer.Option(
        "--open-for", metavar="AGE", help="Only open transactions that began longer ago: 30s, 15m."
    ),
]
IdPattern = Annotated[
    str | None,
    typer.Option(
        "--id-pattern",
        metavar="REGEX",
        help="Only transactional ids that match as a whole (RE2; Apache Kafka 4.1 and later).",
    ),
]
SomeTopic = Annotated[
    str | None,
    typer.Option(
        "--topic", "-t", metavar="TOPIC", help="Only this topic.", autocompletion=complete_topic
    ),
]
Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID", help="Transactional ids. Default: those that are open."),
]
SomeId = Annotated[
    str | None,
    typer.Argument(metavar="ID", help="The transactional id whose transaction to abort."),
]
HangingTopic = Annotated[
    str | None,
    typer.Option(
        "--topic",
        "-t",
        metavar="TOPIC",
        help="The topic of a hanging transaction.",
        autocompletion=complete_topic,
    ),
]
HangingPartition = Annotated[
    int | None, typer.Option("--partition", "-p", min=0, metavar="N", help="Its partition.")
]
HangingProducer = Annotated[
    int | None, typer.Option("--producer", min=0, metavar="ID", help="Its producer id.")
]
WrittenBefore = Annotated[
    str,
    typer.Option(
        metavar="AGE",
        help="Leave out those with a later write: transaction.max.timeout.ms of the brokers.",
    ),
]


def milliseconds(option: str, text: str) -> int:
    """`15m` as milliseconds. Raises UsageFailed."""
    matched = AGO.fullmatch(text)
    if matched is None:
        raise UsageFailed(f"{option}: {text!r} is not an age.", "For example: 30s, 15m, 2h, 1d.")
    return int(matched[1]) * UNIT_MS[matched[2]]


@commands.command("list")
def list_transactions(
    state: States = None,
    open_for: OpenFor = None,
    id_pattern: IdPattern = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """List transactional ids with their states."""
    for name in state or ():
        if name not in STATES:
            raise unknown("state", name, STATES, f"Allowed: {', '.join(STATES)}")
    duration_ms, states = -1, state or ()
    if open_for is not None:
        duration_ms = milliseconds("--open-for", open_for)
        # The filter alone also lets ids without a transaction through.
        states = [name for name in OPEN if not states or name in states]
        if not states:
            raise UsageFailed(
                f"--open-for allows only the states of open transactions: {', '.join(OPEN)}."
            )
    connection = connect(bootstrap, client_config)
    transactions = Transactions(connection.client)
    try:
        found = transactions.listed(states, (), duration_ms, id_pattern)
    except RefusedError as error:
        if error.code is not ErrorCode.invalid_regular_expression:
            raise
        raise UsageFailed(
            f"--id-pattern: {id_pattern!r} is not a regular expression.",
            "Brokers use RE2: https://github.com/google/re2/wiki/Syntax",
        ) from None
    rows = [each._asdict() for each in found]
    columns = ["transactional id", "coordinator", "state", "producer"]
    is_filtered = bool(states) or id_pattern is not None
    none = f"No transactional id matches. {LIST_HINT}" if is_filtered else NO_TRANSACTIONS
    show_list(columns, rows, as_json=as_json, none=none)


def existing(transactions: Transactions, names: Iterable[str]) -> dict[str, DescribedTransaction]:
    """Descriptions by id. Raises Failed that names the first missing id."""
    wanted = list(names)
    found = transactions.described(wanted)
    for name in wanted:
        if name not in found:
            known = [each.transactional_id for each in transactions.listed()]
            raise unknown("transactional id", name, known, LIST_HINT)
    return found


@commands.command()
def describe(
    transactional_ids: Ids = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Show a transaction's producer, age and partitions, and what ends it."""
    connection = connect(bootstrap, client_config)
    transactions = Transactions(connection.client)
    if transactional_ids:
        found = existing(transactions, transactional_ids)
    else:
        found = transactions.described(each.transactional_id for each in transactions.listed(OPEN))
    places = {place for each in found.values() for place in each.partitions}
    producers, why = transactions.open_producers(sorted(places))
    now_ms = int(time.time() * 1000)
    documents = [transaction_document(each, producers, why, now_ms) for each in found.values()]
    none = f"No open transactions. {LIST_HINT}"
    show_documents(documents, show_transaction, as_json=as_json, none=none)


@commands.command("hanging")
def list_hanging(
    topic: SomeTopic = None,
    written_before: WrittenBefore = "15m",
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Find open transactions that no coordinator will end."""
    age_ms = milliseconds("--written-before", written_before)
    before_ms = int(time.time() * 1000) - age_ms
    connection = connect(bootstrap, client_config)
    transactions = Transactions(connection.client)
    if topic is not None and topic not in transactions.topics:
        raise unknown("topic", topic, transactions.topics, TOPIC_HINT)
    found, why = find_hanging(transactions, transactions.partitions(topic), before_ms)
    documents = [hanging_document(each) for each in found]
    if as_json:
        show_json(documents)
    elif documents:
        show_hanging(documents)
    elif not why:
        note(f"No hanging transactions without a write in the last {elapsed_said(age_ms)}.")
    if why:
        (name, index), reason = next(iter(why.items()))
        raise Failed(f"{len(why)} partitions were not searched. {name}-{index}: {reason}.")


@commands.command()
def abort(
    transactional_id: SomeId = None,
    topic: HangingTopic = None,
    partition: HangingPartition = None,
    producer: HangingProducer = None,
    yes: Yes = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Abort an open transaction and fence its producer; or one that hangs in a partition.

    Asks first, unless --yes.
    """
    hanging_in = (topic, partition, producer)
    if transactional_id is not None and hanging_in == (None, None, None):
        connection = connect(bootstrap, client_config)
        transactions = Transactions(connection.client)
        abort_by_id(transactions, transactional_id, yes=yes)
        document: dict[str, Any] = {"transactional_id": transactional_id, "aborted": True}
        said = f"Aborted the transaction of {transactional_id}. Its producer is fenced."
    elif (
        transactional_id is None
        and topic is not None
        and partition is not None
        and producer is not None
    ):
        connection = connect(bootstrap, client_config)
        transactions = Transactions(connection.client)
        each = abort_in_partition(transactions, TopicPartition(topic, partition), producer, yes=yes)
        document = {**hanging_document(each), "aborted": True}
        said = f"Aborted the transaction of producer {producer} in {topic}-{partition}."
    else:
        raise UsageFailed("which transaction?", WAYS)
    if as_json:
        show_json(document)
    else:
        say(said)


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
    count = len(described.partitions)
    partitions = "1 partition" if count == 1 else f"{count} partitions"
    confirm(
        f"Abort the transaction of {transactional_id} in {partitions}, and fence its producer?",
        f"ottla transaction abort {transactional_id} --yes",
        yes=yes,
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
    transactions: Transactions, place: TopicPartition, producer_id: int, *, yes: bool
) -> OpenProducer:
    """Ends a transaction that its coordinator does not end. Raises Failed."""
    topic, partition = place
    if topic not in transactions.topics:
        raise unknown("topic", topic, transactions.topics, TOPIC_HINT)
    if place not in transactions.partitions(topic):
        raise Failed(f"{topic} has no partition {partition}.", f"ottla topic describe {topic}")
    producers, why = transactions.open_producers([place])
    if why:
        raise Failed(f"cannot read the producers of {topic}-{partition}: {why[place]}.")
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
        f"ottla transaction abort --topic {topic} --partition {partition} "
        f"--producer {producer_id} --yes",
        yes=yes,
    )
    transactions.abort_in_partition(each)
    return each


def confirm(question: str, outright: str, *, yes: bool) -> None:
    """Raises typer.Exit with code 1 if the user answers no."""
    if not yes and not ask(question, what_else=f"To abort without confirmation: {outright}"):
        note("Nothing was aborted.")
        raise typer.Exit(EXIT_FAILED)
