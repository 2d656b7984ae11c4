"""One exception of a chain, and its text as a line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

MAX_WORDS: Final = 400


@dataclass(frozen=True, slots=True)
class Cause:
    """One exception of a chain: its full class name, its text and its condition.

    The condition is Spark's own name for the failure, or "SQLSTATE " and the code of a database.
    """

    kind: str
    message: str = ""
    condition: str = ""

    @property
    def short_kind(self) -> str:
        """The class name without its package."""
        return self.kind.rpartition(".")[2].rpartition("$")[2]

    @property
    def plain(self) -> str:
        """The message without Spark's condition, SQLSTATE and quotation of the query."""
        text = re.sub(r"^\s*\[[A-Z0-9_.]+\]\s*", "", self.message)
        ends = r"\s*SQLSTATE: \w{5}|\n== SQL|\n== DataFrame|\n\tat |\nJVM stacktrace"
        words = one_line(re.split(ends, text)[0])
        return words if len(words) <= MAX_WORDS else words[:MAX_WORDS] + " ..."


def one_line(text: str) -> str:
    """Return a text as one line of at most MAX_WORDS characters or a little more."""
    line = re.sub(r"\s+", " ", text).strip()
    return line if len(line) <= 2 * MAX_WORDS else line[: 2 * MAX_WORDS] + " ..."
