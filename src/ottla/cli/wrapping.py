"""Sentences that fit a terminal. A pipe gets them as they are, in one line for programs.

A sentence with a command to type is not cut: the terminal itself wraps it, and what is copied from
there is still one line.
"""

from __future__ import annotations

import os
import sys
from shutil import get_terminal_size
from typing import Final, TextIO

COMMAND: Final = "ottla "
INDENT: Final = "  "


def printable(text: str) -> str:
    """The text with control characters escaped, for names and values from outside."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def wrapped(text: str, stream: TextIO, prefix: str = "") -> str:
    """The text after its prefix, in lines that fit the stream's terminal."""
    is_one_line = not stream.isatty() or COMMAND in text
    text = f"{prefix}{text}"
    if is_one_line:
        return text
    columns = columns_of(stream)
    if len(text) <= columns:
        return text
    # Imported late: short sentences do not need it.
    from textwrap import fill

    return "\n".join(
        fill(line, columns, subsequent_indent=INDENT, break_on_hyphens=False)
        for line in text.splitlines()
    )


def columns_of(stream: TextIO) -> int:
    """The width of the terminal that the stream is; COLUMNS overrides it."""
    if "COLUMNS" not in os.environ:
        columns = os.get_terminal_size(stream.fileno()).columns
        if columns:
            return columns
    return get_terminal_size().columns


def print_error(text: str, prefix: str = "") -> None:
    """One sentence on standard error."""
    print(wrapped(text, sys.stderr, prefix), file=sys.stderr, flush=True)


def print_failure(command: str, message: str, hint: str | None) -> None:
    """What failed, and on lines of their own what to type instead."""
    print_error(message, f"{command}: ")
    for line in hint.splitlines() if hint else ():
        print_error(line.strip(), INDENT)
