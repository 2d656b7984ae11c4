"""Java's .properties files, read like java.util.Properties.load.

A line is a key, then `=`, `:` or blanks, then the value. `#` or `!` starts a comment. A backslash
at the end of a line joins it with the next one, without its leading blanks. `\\t \\n \\r \\f
\\uXXXX` are escapes; any other escaped character stands for itself. If a key is repeated, the last
one wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ottla.config.error import ConfigError

FILE_BYTES_MAX: Final = 4 * 1024 * 1024

_BLANKS: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(path: str | Path) -> dict[str, str]:
    """The settings in a file. Raises ConfigError if it cannot be read or is not a properties
    file.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"properties file {path}: {error.strerror}") from None
    if len(content) > FILE_BYTES_MAX:
        raise ConfigError(f"properties file {path}: larger than {FILE_BYTES_MAX} bytes")
    try:
        return parse_properties(content.decode())
    except UnicodeDecodeError:
        # Java 8 and older wrote these files in Latin-1, in which every byte sequence is valid.
        return parse_properties(content.decode("latin-1"))
    except ConfigError as error:
        raise ConfigError(f"properties file {path}: {error}") from None


def parse_properties(text: str) -> dict[str, str]:
    """The settings in a text. Raises ConfigError for an invalid \\u escape."""
    found: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key_end = _key_end(line)
        rest = line[key_end:].lstrip(_BLANKS)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANKS)
        found[_unescape(line[:key_end], number)] = _unescape(rest, number)
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers: without comments and empty lines, with continued lines joined."""
    parts: list[str] = []
    first = 0
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = raw.lstrip(_BLANKS)
        if not parts:
            if not line or line[0] in "#!":
                continue
            first = number
        slashes = len(line) - len(line.rstrip("\\"))
        if slashes % 2:
            parts.append(line[:-1])
            continue
        parts.append(line)
        yield first, "".join(parts)
        parts = []
    if parts:
        yield first, "".join(parts)


def _key_end(line: str) -> int:
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANKS:
        position += 2 if line[position] == "\\" else 1
    return min(position, len(line))


def _unescape(text: str, line_number: int) -> str:
    if "\\" not in text:
        return text
    result: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\" or position == len(text):
            result.append(character)
            continue
        escaped = text[position]
        position += 1
        if escaped == "u":
            digits = text[position : position + 4]
            if len(digits) < 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise ConfigError(f"line {line_number}: \\u must be followed by 4 hex digits")
            result.append(chr(int(digits, 16)))
            position += 4
        else:
            result.append(_ESCAPES.get(escaped, escaped))
    return "".join(result)
