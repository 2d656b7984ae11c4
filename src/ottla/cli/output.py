"""Standard output, whose errors end a command in one line: its reader has gone, its disk is full.

Output is buffered, so such an error may come with any write, with the last flush, or (if nobody
flushes) while Python ends, which prints a traceback then.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from ottla.cli.failures import Failed


class OutputClosed(Exception):  # noqa: N818 - an ending, not an error
    """The reader of our output has closed it (`| head`): stop quietly."""


class OutputFailed(Failed):
    """The output cannot be written."""


@contextmanager
def output_errors() -> Iterator[None]:
    """For a block that does nothing but write the output. Raises OutputClosed and OutputFailed."""
    try:
        yield
    except BrokenPipeError as error:
        raise OutputClosed from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputFailed(f"cannot write the output: {reason}.") from error


def screen_of(stream: TextIO) -> TextIO:
    """The same stream, but it raises OutputClosed and OutputFailed, also for libraries that
    print.
    """
    return cast(TextIO, Output(stream))


class Output:
    """See `screen_of`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with output_errors():
            return self._stream.write(text)

    def flush(self) -> None:
        with output_errors():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def discard_output() -> None:
    """What is still buffered goes nowhere: it cannot be written, and Python would try again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
