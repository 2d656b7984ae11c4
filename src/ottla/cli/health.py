"""`ottla health`: whether a cluster works, as an exit code for scripts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer

from ottla.cli.client import Connection, connect
from ottla.cli.cluster_documents import cluster_document
from ottla.cli.failures import EXIT_FAILED
from ottla.cli.hanging_transactions import find_hanging
from ottla.cli.plural import plural
from ottla.cli.screen import note, say, show_json
from ottla.cli.transaction_documents import hanging_document
from ottla.cli.typer_options import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, ClientConfig
from ottla.client.admin.transactions import Transactions
from ottla.client.errors import ClientError

MAX_TIMEOUT_MS: Final = 15 * 60_000
"""transaction.max.timeout.ms by default: a transaction with a later write may just be long."""
HANGING: Final = "{} hanging: read_committed consumers and compaction stop before it"

Degraded = Annotated[
    bool,
    typer.Option(
        "--allow-degraded",
        help="Do not fail for what still works: brokers down, under-replicated partitions.",
    ),
]


def health(
    allow_degraded: Degraded = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Check a cluster: exit code 0 if everything works, 1 if not.

    Checked are the controller, brokers that hold replicas, every partition, and hanging
    transactions.
    """
    connection = connect(bootstrap, client_config)
    document = cluster_document(connection)
    document["hanging_transactions"] = hanging_transactions(connection)
    broken, degraded = list(broken_parts(document)), list(degraded_parts(document))
    state = "broken" if broken else "degraded" if degraded else "healthy"
    live = sum(each["live"] for each in document["brokers"])
    if as_json:
        show_json(
            {
                "state": state,
                "broken": broken,
                "degraded": degraded,
                "brokers": live,
                "controller": document["controller"],
                "partitions": document["partitions"],
                "hanging_transactions": document["hanging_transactions"],
            }
        )
    else:
        size = f"{plural(live, 'broker')}, {plural(document['partitions'], 'partition')}"
        say(f"{state}: {size}")
        for problem in broken + degraded:
            say(f"  {problem}")
        if broken or degraded:
            note(f"To see which: {' and '.join(where_to_look(document, broken + degraded))}")
    if broken or (degraded and not allow_degraded):
        raise typer.Exit(EXIT_FAILED)


def hanging_transactions(connection: Connection) -> list[dict[str, Any]] | None:
    """As `ottla transaction hanging --json`; None if the brokers do not say: they are older than
    Apache Kafka 3.0, or none of them answers.
    """
    try:
        transactions = Transactions(connection.client)
        before_ms = int(time.time() * 1000) - MAX_TIMEOUT_MS
        found, _ = find_hanging(transactions, transactions.partitions(), before_ms)
    except ClientError:
        return None
    return [hanging_document(each) for each in found]


def broken_parts(document: dict[str, Any]) -> Iterator[str]:
    """What does not work now."""
    if document["controller"] is None:
        yield "there is no controller"
    elif document["controller_answers"] is False:
        yield f"the controller, broker {document['controller']}, does not respond"
    if document["offline"]:
        yield f"{plural(len(document['offline']), 'partition')} without a leader"
    short = [each for each in document["under_min_isr"] if each["leader"] is not None]
    if short:
        yield f"{plural(len(short), 'partition')} under min.insync.replicas reject acks=all"


def degraded_parts(document: dict[str, Any]) -> Iterator[str]:
    """What works, but may not survive the next failure."""
    for broker in document["brokers"]:
        if not broker["live"]:
            yield f"broker {broker['id']} is down and holds {plural(broker['replicas'], 'replica')}"
    bad = {
        (each["topic"], each["partition"])
        for kind in ("offline", "under_min_isr")
        for each in document[kind]
    }
    behind = [
        each
        for each in document["under_replicated"]
        if (each["topic"], each["partition"]) not in bad
    ]
    if behind:
        yield f"{plural(len(behind), 'partition')} with fewer replicas in sync than assigned"
    if document["hanging_transactions"]:
        yield HANGING.format(plural(len(document["hanging_transactions"]), "transaction"))


def where_to_look(document: dict[str, Any], problems: list[str]) -> Iterator[str]:
    """The commands that show these problems."""
    hangs = int(bool(document["hanging_transactions"]))
    if len(problems) > hangs:
        yield "ottla cluster describe"
    if hangs:
        yield "ottla transaction hanging"
