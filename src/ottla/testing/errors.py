"""What goes wrong in the test kit, each with what a person needs to see why."""

from __future__ import annotations

from typing import Final

LINES_SHOWN: Final = 20


class KitError(AssertionError):
    """Something did not start, end or happen in time; the text ends with the process's log.

    An AssertionError, since in a test it means what a failed assertion means.
    """


class ProcessEndedError(KitError):
    """A process ended where it should have run; `why` is the last line that it said."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why


def last_lines(text: str, most: int = LINES_SHOWN) -> str:
    """The end of a log, indented, for the end of an error's text."""
    lines = text.splitlines()[-most:]
    return "".join(f"\n    {line}" for line in lines) or "\n    (it said nothing)"
