"""`ottla journey --watch`: asks again until the message is read, or nobody will read it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from ottla.cli.failures import Failed
from ottla.cli.screen import CLEAR, write
from ottla.journey.outcome import Outcome, outcome_of

Document = dict[str, Any]


def watch_until_read(
    document: Document,
    ask: Callable[[], Document],
    show: Callable[[Document], None],
    group: str | None,
    every_s: float,
) -> None:
    """Shows the journey again whenever it has changed, on a terminal in place of the last one.

    Raises Failed if the message was removed before it was read.
    """
    show(document)
    while (outcome := outcome_of(document, group)) is Outcome.WAITING:
        sys.stdout.flush()
        time.sleep(every_s)
        before, document = document, ask()
        if document | {"asked_ms": 0} != before | {"asked_ms": 0}:
            if sys.stdout.isatty():
                write(CLEAR)
            show(document)
    if outcome is Outcome.NEVER:
        who = f"group {group!r}" if group is not None else "a group"
        raise Failed(f"the message was removed before {who} read it.")
