"""`ottla journey`: what happened to one message, from its producer to the table row."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.journey.group import add_asked_group
from ottla.cli.journey.list import add_fates, show_messages
from ottla.cli.journey.tree import rich_tree
from ottla.cli.journey.watch import watch_until_read
from ottla.cli.options import AS_JSON, every_option, topic_argument
from ottla.cli.screen import console, note, print_trimmed, show_json
from ottla.cli.value_types import MAX_INT32, WholeNumber
from ottla.client.admin.asked_journeys import Journeys
from ottla.journey.words.search import format_ranges, format_searched
from ottla.journey.words.tell import tell
from ottla.tracing.file_lists import add_files
from ottla.wording.nearest import nearest

Document = dict[str, Any]

VERSION = 1
WAYS = "For example: ottla journey TOPIC 0 42, or TOPIC --key KEY, or TOPIC --latest"


@command()
@topic_argument()
@click.argument(
    "partition",
    type=WholeNumber(0, MAX_INT32),
    metavar="[PARTITION]",
    required=False,
    help="The partition.",
)
@click.argument(
    "offset",
    type=WholeNumber(0),
    metavar="[OFFSET]",
    required=False,
    help="The message's offset in the partition.",
)
@click.option("--key", "-k", metavar="KEY", help="The newest message with this key.")
@click.option("--key-base64", metavar="BASE64", help="The same, for a key that is not text.")
@click.option(
    "--all",
    "all_of_key",
    is_flag=True,
    help="List all messages with the key and their fates, instead of one journey.",
)
@click.option("--latest", is_flag=True, help="The newest message of all.")
@click.option(
    "--table",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="PATH",
    help="Search this Delta table's log for the version. Repeatable.",
)
@click.option("--group", "-g", metavar="NAME", help="Say why this group has not read it.")
@click.option(
    "--watch",
    "-w",
    is_flag=True,
    help="Show each change, until --group has read it, or every group of the partition.",
)
@every_option(1.0, "How often --watch asks.")
@AS_JSON
@cluster_options
def journey(
    cluster: Cluster,
    topic: str,
    partition: int | None,
    offset: int | None,
    key: str | None,
    key_base64: str | None,
    all_of_key: bool,
    latest: bool,
    table: Sequence[Path],
    group: str | None,
    watch: bool,
    every_s: float,
    as_json: bool,
) -> None:
    """Show what happened to one message.

    Who published it, why it is in its partition, where it is stored, which groups have read it,
    which Delta version contains it, and when it may be deleted.
    """
    question = asked(topic, partition, offset, key, key_base64, latest)

    settings = cluster.settings
    client_id = str(settings["client.id"])
    with Journeys(cluster.bootstrap, settings, client_id=client_id) as journeys:

        def answer(question: Document) -> Document:
            return answered(journeys, question)

        if all_of_key:
            check_all(question, table, group, watch=watch)
            document = answer(question | {"all": True})
            document.setdefault("unanswered", document.pop("elsewhere", []))

            def ask(partition: int, offset: int) -> Document:
                return answer(asked(topic, partition, offset, None, None, False))

            add_fates(document, ask, quiet=as_json)
            show_json(document) if as_json else show_messages(document)
            return
        if watch and table:
            raise UsageFailed(
                "--watch and --table exclude each other: ask for the table afterwards."
            )
        document = answer(question)
        for line in ask_tables(document, table, cluster.bootstrap):
            note(line)
        # From now on this message, also if there is a newer one.
        question = asked(topic, document["partition"], document["offset"], None, None, False)

        def complete(document: Document) -> Document:
            add_files(document)
            if group is not None:
                add_asked_group(document, group, cluster)
            return document

        def show(document: Document) -> None:
            show_json(document) if as_json else print_trimmed(console(), rich_tree(tell(document)))

        if watch:
            document = complete(document)
            watch_until_read(document, lambda: complete(answer(question)), show, group, every_s)
        else:
            show(complete(document))


def answered(journeys: Journeys, question: Document) -> Document:
    """The broker's answer. Raises Failed, and UsageFailed."""
    document = journeys.ask(question)
    if "error" in document:
        raise refused(question["topic"], document["error"])
    if document["journey"] != VERSION:
        raise Failed(
            f"the broker speaks version {document['journey']} of the journey, and this command "
            f"version {VERSION}.",
            "Use the `ottla` command of the broker's version.",
        )
    return document


def ask_tables(document: Document, tables: Sequence[Path], bootstrap: str) -> list[str]:
    """Add what the tables record about the message. Returns a line for each table without it."""
    if not tables:
        return []
    from ottla.pipelines.errors import PipelineError
    from ottla.pipelines.kafka.brokers import look_up
    from ottla.pipelines.kafka.settings import read_settings
    from ottla.tracing.delta_deliveries import add_tables

    try:
        cluster = look_up(read_settings(bootstrap), [document["topic"]])
    except PipelineError as error:
        raise Failed(f"{error}.") from error
    topic_id = cluster.topics[document["topic"]].topic_id
    return add_tables(document, tables, topic_id, cluster.cluster_id)


def asked(
    topic: str,
    partition: int | None,
    offset: int | None,
    key: str | None,
    key_base64: str | None,
    latest: bool,
) -> Document:
    """The request, or UsageFailed if the options name two messages."""
    given = {
        "OFFSET": offset is not None,
        "--key": key is not None,
        "--key-base64": key_base64 is not None,
        "--latest": latest,
    }
    chosen = [name for name, is_given in given.items() if is_given]
    if len(chosen) > 1:
        raise UsageFailed(f"give either {' or '.join(chosen)}, not both.", WAYS)
    question: Document = {"journey": VERSION, "topic": topic, "partition": partition}
    if key is not None:
        question["key"] = base64.b64encode(key.encode("utf-8", "surrogateescape")).decode()
    elif key_base64 is not None:
        question["key"] = checked_base64(key_base64)
    elif latest:
        question["latest"] = True
    else:
        question["offset"] = offset
    return question


def check_all(question: Document, table: Sequence[Path], group: str | None, *, watch: bool) -> None:
    """Reject --all where it says nothing."""
    if "key" not in question:
        raise UsageFailed(
            "--all lists the messages of a key; give --key KEY.",
            f"To read all messages: ottla consume {question['topic']}",
        )
    if table:
        raise UsageFailed("--all and --table exclude each other: --table is about one message.")
    if group is not None:
        raise UsageFailed("--all and --group exclude each other: --group is about one message.")
    if watch:
        raise UsageFailed("--all and --watch exclude each other: --watch is about one message.")


def checked_base64(text: str) -> str:
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode()
    except ValueError:
        raise UsageFailed(f"--key-base64 must be base64, not {text!r}.") from None


def refused(topic: str, error: Document) -> Failed:
    """The broker's error as a message with a hint."""
    message = f"{error['message']}."
    hint: str | None = None
    if "partitions" in error:
        hint = format_ranges(topic, error["partitions"])
    elif error["code"] == "unknown_topic":
        close = nearest(topic, error.get("topics", ()))
        hint = f"Did you mean {close!r}?" if close else "To list all topics: ottla topic list"
    elif error["code"] == "key_not_found":
        hint = format_searched(error.get("searched", ()))
    failure = UsageFailed if error["code"] in ("which_offset", "bad_request") else Failed
    return failure(message, hint)
