"""Branches of the journey's tree, and how the tree formats times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from ottla.cli.screen import printable
from ottla.journey.formatting import elapsed_said, moment_said

Document = dict[str, Any]

STEP: Final = "bold cyan"
WEAK: Final = "dim"
GOOD: Final = "green"
WAITING: Final = "yellow"
BAD: Final = "red"
NO_TIME: Final = "time not recorded"
DATE_CHARACTERS: Final = len("2026-01-31")
TIME_CHARACTERS: Final = len("12:00:00.123")

NAMES: Final = {
    "delta": "Delta",
    "parquet": "Parquet files",
    "json": "JSON files",
    "postgresql": "PostgreSQL",
    "topic": "a topic",
}
"""The kinds of destinations."""


@dataclass(slots=True)
class Branch:
    """A line made of styled parts, and the lines below it."""

    parts: list[tuple[str, str]]
    below: list[Branch] = field(default_factory=list)

    def text(self) -> str:
        return "".join(text for text, _ in self.parts)

    def add(self, *parts: tuple[str, str] | str) -> Branch:
        branch = line(*parts)
        self.below.append(branch)
        return branch


def line(*parts: tuple[str, str] | str) -> Branch:
    """A branch of plain and styled parts. Text from outside is made printable."""
    pairs = [(part, "") if isinstance(part, str) else part for part in parts]
    return Branch([(printable(text), style) for text, style in pairs])


class Clock:
    """Formats times: with the date only if it is not the publishing date, and the time since
    publishing.
    """

    def __init__(self, document: Document) -> None:
        published: int | None = (document["published"] or {}).get("timestamp_ms")
        self._published_ms = published if published is not None and published >= 0 else None
        self._day = None
        if self._published_ms is not None:
            self._day = moment_said(self._published_ms)[:DATE_CHARACTERS]

    def at(self, ms: int, *, dated: bool = False) -> str:
        """`2026-01-31 12:00:00.123`, or the time alone."""
        said = moment_said(ms).removesuffix(" UTC")
        return said if dated or self._day is None else said.removeprefix(f"{self._day} ")

    def after(self, when: Document | None) -> str:
        """`  +12 ms`: the time since publishing, if both are known exactly."""
        if not when or not when["exact"] or self._published_ms is None:
            return ""
        took_ms = when["since_ms"] - self._published_ms
        sign = "+" if took_ms >= 0 else "-"
        return f"  {sign}{elapsed_said(abs(took_ms))}"

    def moment(self, when: Document | None, *, dated: bool = False) -> str:
        """A time of the document: exact, or its bounds."""
        said = when or {}
        since: int | None = said.get("since_ms")
        until: int | None = said.get("until_ms")
        if since is None and until is None:
            return NO_TIME
        if since is None:
            assert until is not None
            return f"before {self.at(until, dated=dated)}"
        first = self.at(since, dated=dated)
        if until is None:
            return f"after {first}"
        if since == until:
            return first
        last = self.at(until, dated=dated)
        if len(last) > TIME_CHARACTERS and first[:DATE_CHARACTERS] == last[:DATE_CHARACTERS]:
            last = last[-TIME_CHARACTERS:]
        return f"between {first} and {last}"


def one_of(noun: str, first: int, last: int) -> str:
    """`version 7`, or a bound: `one of version 5 to 7`."""
    return f"{noun} {last}" if first == last else f"one of {noun} {first} to {last}"
