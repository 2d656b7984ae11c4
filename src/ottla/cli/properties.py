"""Java's `.properties` format, as Kafka's own configuration files are written.

A line is `name=value`, `name: value` or `name value`; `#` and `!` begin a comment; a backslash at
the end continues the line; `\\n`, `\\t`, `\\uXXXX` and `\\` before any other character are escapes.
Source: the documentation of java.util.Properties.load.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
BLANKS: Final = " \t\f"


class PropertiesError(ValueError):
    """A line that is not in the format; the message names its number."""


def parse_properties(text: str) -> dict[str, str]:
    """Names and values; the last of two lines with one name wins, as in Java."""
    properties: dict[str, str] = {}
    for number, line in logical_lines(text):
        name, value = split_pair(line)
        properties[unescape(name, number)] = unescape(value, number)
    return properties


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined, and the number of the first of each."""
    pending, first = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.lstrip(BLANKS)
        if not pending:
            if not line or line[0] in "#!":
                continue
            first = number
        pending += line
        if (len(pending) - len(pending.rstrip("\\"))) % 2:
            pending = pending[:-1]
            continue
        yield first, pending
        pending = ""
    if pending:
        yield first, pending


def split_pair(line: str) -> tuple[str, str]:
    """Name and value at the first `=`, `:` or blank that no backslash protects."""
    position = 0
    while position < len(line) and line[position] not in "=:" + BLANKS:
        position += 2 if line[position] == "\\" else 1
    name = line[:position]
    rest = line[position:].lstrip(BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(BLANKS)
    return name, rest


def unescape(text: str, number: int) -> str:
    """The text with its escapes resolved."""
    if "\\" not in text:
        return text
    parts: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\" or position == len(text):
            parts.append(character)
            continue
        escape = text[position]
        position += 1
        if escape != "u":
            parts.append(ESCAPES.get(escape, escape))
            continue
        digits = text[position : position + 4]
        if len(digits) < 4 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
            raise PropertiesError(f"line {number}: \\u wants four hexadecimal digits")
        parts.append(chr(int(digits, 16)))
        position += 4
    return "".join(parts)
