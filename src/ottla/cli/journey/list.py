"""The messages of a key as a table with their fate, and what of the topic was not searched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.cli.failures import Failed
from ottla.cli.progress import Watch
from ottla.cli.screen import note, show_table
from ottla.client.errors import ClientError
from ottla.journey.formatting import format_moment
from ottla.journey.words.fate import fate_of, format_fate
from ottla.journey.words.published import shown
from ottla.journey.words.search import left_out
from ottla.wording.plural import plural

Document = dict[str, Any]

NO_TIMESTAMP = -1
MAX_FATES: Final = 100
"""Of the newest messages: each takes a request of 10 to 50 ms."""


def add_fates(document: Document, ask: Callable[[int, int], Document], *, quiet: bool) -> None:
    """Adds `fate` to the newest messages, and null to the others. `ask` returns the journey of a
    partition and offset, or raises Failed or ClientError: then the fate is null, too.
    """
    messages = document["messages"]
    newest = sorted(messages, key=lambda one: int(one["timestamp_ms"]), reverse=True)[:MAX_FATES]
    for one in messages:
        one["fate"] = None
    with Watch("Asking for the fate of each", len(newest), wanted=not quiet) as watch:
        for done, one in enumerate(newest):
            watch.at(done)
            try:
                one["fate"] = fate_of(ask(one["partition"], one["offset"]))
            except (Failed, ClientError):  # its leader has left, or it was removed meanwhile
                continue


def show_messages(document: Document) -> None:
    """Print the list, oldest first in each partition."""
    show_table(
        ["partition", "offset", "time", "value", "fate"],
        [
            [
                one["partition"],
                one["offset"],
                said_time(one["timestamp_ms"]),
                shown(one["value"]),
                None if one["fate"] is None else format_fate(one["fate"]),
            ]
            for one in document["messages"]
        ],
    )
    count = len(document["messages"])
    newest = "" if all(one["whole"] for one in document["searched"]) else "The newest "
    note(f"{newest}{plural(count, 'message')} with this key.")
    if unknown := sum(one["fate"] is None for one in document["messages"]):
        what = "1 message is" if unknown == 1 else f"{unknown} messages are"
        note(
            f"The fate of {what} not shown. For one: ottla journey {document['topic']} PARTITION"
            " OFFSET"
        )
    for line in left_out(document):
        note(line)


def said_time(ms: int) -> str | None:
    return None if ms == NO_TIMESTAMP else format_moment(ms)
