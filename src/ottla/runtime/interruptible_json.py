"""Parses JSON in a thread beside others, which get their turn meanwhile.

Python's parser in C lets no other thread run until it is done: 3 MB of empty lists take it 150 ms.
Its parser in Python takes some ten times as long and takes turns with the others.
"""

from __future__ import annotations

import json
import json.decoder
import json.scanner
from typing import Any, cast


class _Interruptible(json.JSONDecoder):
    """The same parser, all of it in Python."""

    def __init__(self) -> None:
        super().__init__()
        decoder, scanner = cast(Any, json.decoder), cast(Any, json.scanner)
        self.parse_object = decoder.JSONObject
        self.parse_array = decoder.JSONArray
        self.parse_string = decoder.py_scanstring
        self.scan_once = scanner.py_make_scanner(self)


def parsed_in_turns(text: str) -> Any:
    """As `json.loads`. Raises ValueError and RecursionError."""
    # One for each call: it keeps the names that it has met.
    return _Interruptible().decode(text)
