"""Reads a page's message, without holding the event loop.

Half a megabyte of empty lists takes Python's JSON parser 50 ms. So a text of many elements is read
in a thread that takes turns with the loop (`runtime.interruptible_json`).
"""

from __future__ import annotations

import json
from typing import Any, Final

from ottla.runtime.interruptible_json import parsed_in_turns

MAX_PARTS: Final = 25_000
"""Of a text that is read at once: a few milliseconds."""
_PARTS: Final = (b"[", b"{", b'"', b",")
MAX_ID_CHARACTERS: Final = 100
"""It is in each record."""


def is_long(text: bytes) -> bool:
    """Whether reading it would take too long; those inside of strings are counted, too."""
    return len(text) > MAX_PARTS and sum(map(text.count, _PARTS)) > MAX_PARTS


def read_message(text: bytes, *, slowly: bool = False) -> dict[str, Any] | None:
    """None if it is no object with an id, or with none. `slowly`: other threads may run."""
    try:
        message = parsed_in_turns(text.decode()) if slowly else json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not is_id(message.get("id", 0)):
        return None
    return message


def is_id(value: object) -> bool:
    """A text or a number, which the answers have."""
    if isinstance(value, str):
        return len(value) <= MAX_ID_CHARACTERS
    return isinstance(value, int) and abs(value) < 2**63
