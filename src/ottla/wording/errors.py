"""The base of errors that are reported to people, and never as a traceback."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from ottla.wording.nearest import nearest


class ReportedError(Exception):
    """The text is one sentence. `hint` is what to do instead, if that is known."""

    is_usage = False
    """Whether what was given cannot be used, so that nothing was tried."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


E = TypeVar("E", bound=ReportedError)


def unknown(error: type[E], kind: str, word: str, known: Iterable[str], hint: str) -> E:
    """The error for a name that does not exist, with the most similar name that does."""
    close = nearest(word, known)
    question = f" Did you mean {close!r}?" if close else ""
    return error(f"there is no {kind} {word!r}.{question}", hint)
