"""The errors of the test kit, each with the log that explains it."""

from __future__ import annotations

from typing import Any, Final

LINES_SHOWN: Final = 20


def is_for_the_test(failure: Any) -> bool:
    """Whether pytest shows the test's line for a failure, and leaves out the frames of the kit.

    For `__tracebackhide__` of a module; `failure` is pytest's ExceptionInfo. Any other exception is
    a bug of the kit, whose frames are shown.
    """
    return bool(failure.errisinstance(AssertionError))


__tracebackhide__ = is_for_the_test


class KitError(AssertionError):
    """Something did not start, end or happen in time; the message ends with the process's log.

    An AssertionError, because pytest should report it as a failed test.
    """


class ProcessEndedError(KitError):
    """A process exited too early; `why` is the last line of its output."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why


def counted(number: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def last_lines(text: str, most: int = LINES_SHOWN) -> str:
    """The end of a log, indented, for the end of an error's text."""
    lines = text.splitlines()[-most:]
    return "".join(f"\n    {line}" for line in lines) or "\n    (no output)"
