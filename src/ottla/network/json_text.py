"""Reads a page's message, without holding the event loop.

Python's JSON parser is written in C and lets no other thread run until it is done: half a megabyte
of empty lists takes it 50 ms. So a text of many elements is read by the same parser as it is
written in Python, in a thread: that takes ten times as long, and takes turns with the loop.
"""

from __future__ import annotations

import json
from json import scanner
from typing import Any, Final

MAX_PARTS: Final = 25_000
"""Of a text that is read at once: a few milliseconds."""
_PARTS: Final = (b"[", b"{", b'"', b",")
MAX_ID_CHARACTERS: Final = 100


class _InPython(json.JSONDecoder):
    def __init__(self) -> None:
        super().__init__()
        make: Any = vars(scanner)["py_make_scanner"]
        self.scan_once = make(self)


_IN_PYTHON: Final = _InPython()


def is_long(text: bytes) -> bool:
    """Whether reading it would take too long; those inside of strings are counted, too."""
    return len(text) > MAX_PARTS and sum(map(text.count, _PARTS)) > MAX_PARTS


def read_message(text: bytes, *, slowly: bool = False) -> dict[str, Any] | None:
    """None if it is no object with an id, or with none. `slowly`: other threads may run."""
    try:
        message = _IN_PYTHON.decode(text.decode()) if slowly else json.loads(text)
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
