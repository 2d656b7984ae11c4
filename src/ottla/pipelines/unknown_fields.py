"""The fields of a topic's values that its schema lacks, as commits say it to the journey. Pure.

The metadata of a commit has it, as soon as the run has seen one, as

    "unknown": {"did": "drop", "fields": ["delay_min", "n.y", "a[].y"]}

`did` is the argument `unknown_fields` of `topic`. At most MAX_NAMES are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

MAX_NAMES: Final = 20
MAX_NAME_CHARS: Final = 100
MAX_SAID_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class UnknownFields:
    """What becomes of the fields of a topic's values that its schema lacks, and their names."""

    did: str
    names: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return it as a commit has it."""
        return {"did": self.did, "fields": [one[:MAX_NAME_CHARS] for one in self.names[:MAX_NAMES]]}


def read_unknown_fields(said: Any) -> UnknownFields | None:
    """Return what a commit says, None where it says nothing of this kind."""
    if not isinstance(said, dict):
        return None
    did, names = said.get("did"), said.get("fields")
    if not isinstance(did, str) or not isinstance(names, list):
        return None
    if not names or not all(isinstance(one, str) for one in names):
        return None
    return UnknownFields(did, tuple(names[:MAX_NAMES]))


def format_names(found: Iterable[UnknownFields]) -> str | None:
    """Return the names as one text, None where there are none."""
    names = list(dict.fromkeys(name for one in found for name in one.names))
    text = ", ".join(names)
    if len(text) > MAX_SAID_CHARS:
        text = f"{text[: MAX_SAID_CHARS - 1]}…"
    return text or None


Unknown = Mapping[str, UnknownFields]
"""The unknown fields of a run, by topic; topics without any are left out."""
