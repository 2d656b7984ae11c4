"""What waiting for a message has come to: it was read, or it never will be."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, Final

Document = dict[str, Any]

_UNREAD: Final = frozenset(
    {"not_yet", "set_back", "no_offset", "unknown", "available", "acquired", "archiving"}
)
"""States of a group, maybe a share group, that may still read the message or is not done with it.
"""
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
    """Of one group; or of all that have committed offsets for the partition, or share it."""
    if group is None:
        states = [each["state"] for each in (*document["read"], *document.get("shared", ()))]
    else:
        states = [document["asked_group"]["state"]]
    waiting = [state for state in states if state in _UNREAD]
    if document["state"] in _GONE and (waiting or not states):
        return Outcome.NEVER
    if waiting or not states:
        return Outcome.WAITING
    return Outcome.NEVER if set(states) == {"missed"} else Outcome.READ
