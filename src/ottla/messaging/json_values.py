"""Parses the JSON of a record's value in a thread beside others.

Python's parser in C lets no other thread run: of 3 MB of empty lists it makes 150 ms in which no
page is answered. Its parser in Python takes some ten times as long and gives others their turn.
"""

from __future__ import annotations

import json
import json.decoder
import json.scanner
from typing import Any, Final, cast

MAX_AT_ONCE_BYTES: Final = 128 << 10
"""Towards 6 ms in C, at worst."""


class _Interruptible(json.JSONDecoder):
    """The same parser, all of it in Python."""

    def __init__(self) -> None:
        super().__init__()
        decoder, scanner = cast(Any, json.decoder), cast(Any, json.scanner)
        self.parse_object = decoder.JSONObject
        self.parse_array = decoder.JSONArray
        self.parse_string = decoder.py_scanstring
        self.scan_once = scanner.py_make_scanner(self)


def parsed(data: bytes) -> Any:
    """As `json.loads`. Raises ValueError and RecursionError."""
    if len(data) <= MAX_AT_ONCE_BYTES:
        return json.loads(data)
    text = data.decode(json.detect_encoding(data), "surrogatepass")
    # One for each call: it keeps the names that it has met.
    return _Interruptible().decode(text)
