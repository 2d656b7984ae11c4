"""The messages of a key as a table, and what of the topic was not searched."""

from __future__ import annotations

from typing import Any

from ottla.cli.journey_tree import shown
from ottla.cli.screen import note, show_table
from ottla.cli.topic_documents import plural
from ottla.journey.formatting import moment_said

Document = dict[str, Any]

NO_TIMESTAMP = -1


def show_messages(document: Document) -> None:
    """Print the list, oldest first in each partition."""
    show_table(
        ["partition", "offset", "time", "value"],
        [
            [one["partition"], one["offset"], said_time(one["timestamp_ms"]), shown(one["value"])]
            for one in document["messages"]
        ],
    )
    count = len(document["messages"])
    newest = "" if all(one["whole"] for one in document["searched"]) else "The newest "
    note(f"{newest}{plural(count, 'message')} with this key.")
    for line in left_out(document):
        note(line)


def said_time(ms: int) -> str | None:
    return None if ms == NO_TIMESTAMP else moment_said(ms)


def left_out(document: Document) -> list[str]:
    """A line for the partitions that were not searched, or not to their start."""
    lines: list[str] = []
    ended = [one for one in document["searched"] if not one["whole"]]
    if ended:
        places = ", ".join(
            f"partition {one['partition']} before offset {one['down_to_offset']}" for one in ended
        )
        lines.append(f"Not searched: {places}.")
        alone = "Give a PARTITION to search it alone; " if len(document["searched"]) > 1 else ""
        lines.append(f"{alone}ottla consume {document['topic']} --key KEY reads all.")
    missing = document["unanswered"]
    if missing:
        names = ", ".join(map(str, missing))
        word = "Partitions" if len(missing) > 1 else "Partition"
        lines.append(f"{word} {names}: no leader answered.")
    return lines
