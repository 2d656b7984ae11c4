"""`ottla health`: whether a cluster works, as an exit code for scripts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from ottla.cli.client import connect
from ottla.cli.cluster_documents import cluster_document
from ottla.cli.failures import EXIT_FAILED
from ottla.cli.options import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, ClientConfig
from ottla.cli.screen import note, say, show_json
from ottla.cli.topic_documents import plural

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

    Checked are the controller, brokers that hold replicas, and every partition.
    """
    document = cluster_document(connect(bootstrap, client_config))
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
            }
        )
    else:
        size = f"{plural(live, 'broker')}, {plural(document['partitions'], 'partition')}"
        say(f"{state}: {size}")
        for problem in broken + degraded:
            say(f"  {problem}")
        if broken or degraded:
            note("To see which: ottla cluster describe")
    if broken or (degraded and not allow_degraded):
        raise typer.Exit(EXIT_FAILED)


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
