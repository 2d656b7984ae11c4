"""What is known of a failure: by what it is recognized, its sentence, and what is waited for.

A target declares the failures that it alone has, with these; `table` has those of all. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ottla.pipelines.failures.cause import Cause


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a query is started again: `reason` says it, with the names of `About`.

    `asks_brokers`: the brokers are asked before each try, for they may be the cause.
    `rejects_rows`: the target has refused a row, and with it the batch. That passes only where the
    target says by now which rows it refuses: they are rejected.
    """

    name: str
    reason: str
    asks_brokers: bool = False
    rejects_rows: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """A failure: one of its causes matches each pattern that is given.

    `condition` is matched as a whole, `kind` is searched in the exception's class, `text` in class
    and message, the innermost cause first. `retry` names what is waited for, None where a retry
    cannot help. `sentence` is a text whose fields `words.fields` lists, or makes one from what was
    found, and may return None; an empty one leaves the sentence to another row.
    """

    sentence: str | Callable[[Found], str | None] = ""
    condition: str = ""
    kind: str = ""
    text: str = ""
    retry: Wait | None = None


@dataclass(frozen=True, slots=True)
class About:
    """The names of the query and its surroundings that a sentence may use.

    `failures`: those that its target alone has.
    """

    query: str = "the query"
    target: str = "the target"
    checkpoint: str = "its checkpoint"
    topics: tuple[str, ...] = ()
    servers: str = "the broker"
    hadoop: str = "<Hadoop version>"
    failures: tuple[Known, ...] = ()
    ranges: str = ""  # what a failed task was reading: "flights partition 0, offsets 3 to 9"

    @property
    def while_reading(self) -> str:
        return f" while it read {self.ranges}" if self.ranges else ""


@dataclass(frozen=True, slots=True)
class Found:
    """A cause that a row of the table matches, in its chain; `match` is that of its text."""

    cause: Cause
    match: re.Match[str] | None
    causes: Sequence[Cause]
    about: About

    def search(self, pattern: str) -> re.Match[str] | None:
        """Search the classes and texts of all causes, the innermost first."""
        return search(self.causes, pattern)

    def of_kind(self, pattern: str) -> Cause | None:
        """Return the outermost cause whose class matches."""
        return next((one for one in self.causes if re.search(pattern, one.kind)), None)


def search(causes: Sequence[Cause], pattern: str) -> re.Match[str] | None:
    found = (re.search(pattern, f"{one.kind}: {one.message}") for one in reversed(causes))
    return next((one for one in found if one), None)
