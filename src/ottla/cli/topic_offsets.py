"""`ottla topic offsets` and `ottla topic trim`: where a topic's records begin and end, and deleting
the oldest ones.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

import typer
from confluent_kafka import TopicPartition

from ottla.cli.client import Connection, connect, is_internal
from ottla.cli.failures import EXIT_FAILED, Failed, UsageFailed
from ottla.cli.offsets import Partition, end_offsets, first_offsets, offsets_at
from ottla.cli.positions import parse_time
from ottla.cli.screen import ask, note, say, show_json, show_table
from ottla.cli.typer_options import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    ClientConfig,
    DryRun,
    OfPartition,
    TopicName,
    TopicNames,
    Yes,
)

FORMS: Final = "For example: --before 7d, --before 2026-01-31T12:00, --before-offset 42"

At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="WHEN",
        help="Also show the first offset at or after a time or age: 2026-01-31T12:00, ms, 15m.",
    ),
]
Before = Annotated[
    str | None,
    typer.Option(
        "--before", metavar="WHEN", help="Delete what comes before this time or age, or `end`."
    ),
]
BeforeOffset = Annotated[
    int | None,
    typer.Option("--before-offset", min=0, metavar="N", help="Delete what is before this offset."),
]


def partitions_of(topics: Mapping[str, Any], wanted: Iterable[int] | None) -> list[Partition]:
    """The chosen partitions, in order. Raises Failed for one that does not exist."""
    chosen: list[Partition] = []
    for name, topic in topics.items():
        for number in sorted(set(wanted)) if wanted else sorted(topic.partitions):
            if number not in topic.partitions:
                last = len(topic.partitions) - 1
                raise Failed(f"topic {name!r} has partitions 0 to {last}, not {number}.")
            chosen.append((name, number))
    return chosen


def offsets(
    topics: TopicNames,
    at: At = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Show the first and the next offset of each partition."""
    at_ms = None if at is None else parse_time("--at", at, now_ms())
    connection = connect(bootstrap, client_config)
    chosen = partitions_of(connection.existing_topics(list(dict.fromkeys(topics))), None)
    first, end = first_offsets(connection, chosen), end_offsets(connection, chosen)
    then = {} if at_ms is None else offsets_at(connection, chosen, at_ms)
    documents = [offsets_document(key, first[key], end[key], then.get(key)) for key in chosen]
    if as_json:
        show_json(documents)
        return
    show_table(
        ["topic", "partition", "start offset", "end offset", "offsets", "at"],
        [list(document.values()) for document in documents],
        drop_empty=() if at_ms is not None else ("at",),
    )


def offsets_document(key: Partition, first: int, end: int, then: int | None) -> dict[str, Any]:
    """`offsets`: how many there are; records are fewer after compaction and with transactions."""
    return {
        "topic": key[0],
        "partition": key[1],
        "start_offset": first,
        "end_offset": end,
        "offsets": end - first,
        "offset_at": then,
    }


def trim(
    topic: TopicName,
    before: Before = None,
    before_offset: BeforeOffset = None,
    partition: OfPartition = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Delete the oldest records of a topic (KIP-107). Asks first, unless --yes."""
    before_ms = check_target(topic, before, before_offset, partition)
    connection = connect(bootstrap, client_config)
    chosen = partitions_of(connection.existing_topics([topic]), partition)
    first, end = first_offsets(connection, chosen), end_offsets(connection, chosen)
    if before_offset is not None:
        wanted = dict.fromkeys(chosen, before_offset)
    elif before_ms is not None:
        wanted = offsets_at(connection, chosen, before_ms)
    else:
        wanted = end
    targets = planned(wanted, first, end)
    gone = sum(target - first[key] for key, target in targets.items())
    if targets and not dry_run and not yes:
        question = f"Delete {gone:,} offsets of {topic}?"
        if not ask(question, what_else="To delete without confirmation, add --yes."):
            note("Nothing was deleted.")
            raise typer.Exit(EXIT_FAILED)
    after = targets if dry_run else trimmed(connection, targets)
    documents = [
        {"topic": key[0], "partition": key[1], "before": first[key], "after": after.get(key)}
        for key in targets
    ]
    if as_json:
        show_json({"applied": not dry_run, "partitions": documents})
        return
    if not documents:
        say(f"Nothing to delete: no partition of {topic} begins before that.")
        return
    show_table(
        ["topic", "partition", "start offset", "new start offset"],
        [list(document.values()) for document in documents],
    )
    if dry_run:
        note("Nothing was deleted (--dry-run).")


def check_target(
    topic: str, before: str | None, before_offset: int | None, partition: Sequence[int] | None
) -> int | None:
    """The time in ms, if one was given. Raises UsageFailed for a target that is not clear."""
    if is_internal(topic):
        raise UsageFailed(f"{topic} is an internal topic, which only its coordinators may change.")
    if (before is None) == (before_offset is None):
        raise UsageFailed("give either --before or --before-offset.", FORMS)
    if before_offset is not None and len(partition or ()) != 1:
        raise UsageFailed(
            "--before-offset needs --partition: offsets belong to one partition.",
            f"For example: ottla topic trim {topic} --partition 0 --before-offset {before_offset}",
        )
    if before is None or before.lower() == "end":
        return None
    return parse_time("--before", before, now_ms())


def planned(
    wanted: Mapping[Partition, int], first: Mapping[Partition, int], end: Mapping[Partition, int]
) -> dict[Partition, int]:
    """The new start of each partition that changes. Raises Failed for an offset past the end."""
    for (topic, number), target in wanted.items():
        if target > end[topic, number]:
            raise Failed(
                f"partition {number} of {topic!r} has no offset {target}: allowed are "
                f"{first[topic, number]} to {end[topic, number]}, the end."
            )
    return {key: target for key, target in wanted.items() if target > first[key]}


def trimmed(connection: Connection, targets: Mapping[Partition, int]) -> dict[Partition, int]:
    """Delete, and return the new starts as the brokers report them. Raises Failed."""
    if not targets:
        return {}
    futures = connection.admin.delete_records(
        [TopicPartition(*key, target) for key, target in targets.items()],
        request_timeout=connection.answer_timeout_s,
    )
    found: dict[Partition, int] = {}
    for place, future in futures.items():
        doing = f"delete records of {place.topic}-{place.partition}"
        result = connection.wait(future, doing)
        found[place.topic, place.partition] = result.low_watermark
    return found


def now_ms() -> int:
    return int(time.time() * 1000)
