"""`ottla journey --watch`: asks again until the message is read, or nobody will read it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Final

from ottla.cli.failures import Failed
from ottla.cli.screen import CLEAR, write

Document = dict[str, Any]

_UNREAD: Final = frozenset({"not_yet", "set_back", "no_offset", "unknown"})
"""States of a group that may still read the message."""
_GONE: Final = frozenset({"removed", "compacted"})
"""States of a message that nobody gets any more."""


class Outcome(Enum):
    """What watching a message has come to."""

    WAITING = auto()
    READ = auto()
    """All have passed it. For a group that began past it, it is not known whether it has read it:
    that does not change, either.
    """
    NEVER = auto()
    """It was removed before they read it."""


def outcome_of(document: Document, group: str | None) -> Outcome:
    """Of one group; or of all that have committed offsets for the partition."""
    if group is None:
        states = [each["state"] for each in document["read"]]
    else:
        states = [document["asked_group"]["state"]]
    waiting = [state for state in states if state in _UNREAD]
    if document["state"] in _GONE and (waiting or not states):
        return Outcome.NEVER
    if waiting or not states:
        return Outcome.WAITING
    return Outcome.NEVER if set(states) == {"missed"} else Outcome.READ


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
