"""Which of the consumed records are shown: those before a bound, those that match, the newest."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from heapq import heappush, heappushpop
from itertools import count
from typing import Any, Final

from ottla.messaging.json_values import parsed
from ottla.messaging.patterns import PatternError, compiled
from ottla.messaging.record_headers import known_headers

Matches = Callable[[Any], bool]
SIGNS: Final = frozenset("\\.+*?()|[]{}^$")
"""What means something else than itself in RE2's syntax."""
MAX_STEP: Final = 1_000
"""Characters of a name in a path: Python refuses to read numbers of thousands of digits."""
MAX_BLANKS: Final = 64
"""Before JSON that is looked at."""


def matcher(pattern: str, option: str = "--grep") -> Matches:
    """Whether the key or the value of a record has a part that matches. Raises PatternError, which
    names the option.
    """
    found = compiled(
        option,
        pattern,
        "The syntax is RE2's; to search for a text with signs, escape them: '\\$5\\.00'",
        of_bytes=True,
    )

    if SIGNS.isdisjoint(pattern):
        # A text as it is: a third of the time of an expression.
        text = pattern.encode()

        def has_text(message: Any) -> bool:
            data = message.value()
            if data is not None and text in data:
                return True
            data = message.key()
            return data is not None and text in data

        return has_text

    def matches(message: Any) -> bool:
        for data in (message.value(), message.key()):
            if data is not None and found.search(data) is not None:
                return True
        return False

    return matches


def key_matcher(key: str) -> Matches:
    """Whether a record has this key, as UTF-8."""
    wanted = key.encode()
    return lambda message: message.key() == wanted


def header_matcher(text: str) -> Matches:
    """Whether a record has this header: `NAME`, or `NAME=VALUE` (UTF-8)."""
    name, equals, value = text.partition("=")
    wanted = value.encode()

    def matches(message: Any) -> bool:
        return any(
            each == name and (not equals or data == wanted)
            for each, data in known_headers(message) or ()
        )

    return matches


def json_matcher(text: str) -> Matches:
    """Whether the value is JSON that has something at this path: `a.b.0`, or `a.b.0=VALUE`, where
    a text is compared as it is and all else as JSON. Raises PatternError.
    """
    path, equals, value = text.partition("=")
    steps = path.strip().split(".")
    if not all(steps) or max(map(len, steps)) > MAX_STEP:
        raise PatternError(
            f"{text!r} is not a path in JSON.", "For example: customer.id=7 or items.0"
        )
    wanted = value.strip()
    needed = needed_bytes(steps, wanted if equals else "")

    def matches(message: Any) -> bool:
        data = message.value()
        # What is not JSON does not have to be parsed, nor what lacks a name of the path.
        if data is None or data[:MAX_BLANKS].lstrip()[:1] not in (b"{", b"["):
            return False
        is_utf_8 = data[1:2] != b"\x00"
        if is_utf_8 and b"\\" not in data and not all(each in data for each in needed):
            return False
        try:
            found = parsed(data)
        except (ValueError, RecursionError):
            return False
        for step in steps:
            if isinstance(found, dict) and step in found:
                found = found[step]
            elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
                found = found[int(step)]
            else:
                return False
        return not equals or found == wanted or json.dumps(found, ensure_ascii=False) == wanted

    return matches


def needed_bytes(steps: Sequence[str], wanted: str) -> list[bytes]:
    """What JSON with this path and value has in it, unless it has a backslash: names, which may be
    written with escapes. A number may be one of a list, and is written in several ways.
    """
    words = [step for step in steps if not step.isdecimal()]
    if wanted and all(each.isalpha() or each in " _" for each in wanted):
        words.append(wanted)
    return [word.encode("utf-8", "surrogatepass") for word in words]


def both(one: Matches | None, other: Matches | None) -> Matches | None:
    """Whether a record is chosen by each of those that are given; None if neither is."""
    if one is None or other is None:
        return one or other
    return lambda message: one(message) and other(message)


class Newest:
    """The newest `most` records of those added, by their timestamps."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._heap: list[tuple[int, int, Any]] = []
        self._numbers = count()

    def add(self, messages: Sequence[Any]) -> None:
        for message in messages:
            entry = (message.timestamp()[1], next(self._numbers), message)
            if len(self._heap) < self._most:
                heappush(self._heap, entry)
            else:
                heappushpop(self._heap, entry)

    def in_order(self) -> list[Any]:
        """Oldest first."""
        return [message for _, _, message in sorted(self._heap, key=lambda entry: entry[:2])]
