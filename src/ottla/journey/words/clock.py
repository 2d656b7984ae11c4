"""Times in words."""

from __future__ import annotations

from typing import Final

from ottla.journey.formatting import format_elapsed, format_moment
from ottla.journey.words.line import Document

NO_TIME: Final = "time not recorded"
DATE_CHARACTERS: Final = len("2026-01-31")
TIME_CHARACTERS: Final = len("12:00:00.123")


class Clock:
    """Formats times: with the date only if it is not the publishing date, and the time since
    publishing.
    """

    def __init__(self, document: Document) -> None:
        published: int | None = (document["published"] or {}).get("timestamp_ms")
        self._published_ms = published if published is not None and published >= 0 else None
        self._day = None
        if self._published_ms is not None:
            self._day = format_moment(self._published_ms)[:DATE_CHARACTERS]

    def at(self, ms: int, *, dated: bool = False) -> str:
        """`2026-01-31 12:00:00.123`, or the time alone."""
        said = format_moment(ms).removesuffix(" UTC")
        return said if dated or self._day is None else said.removeprefix(f"{self._day} ")

    def after(self, when: Document | None) -> str:
        """`  +12 ms`: the time since publishing, if both are known exactly."""
        if not when or not when["exact"] or self._published_ms is None:
            return ""
        took_ms = when["since_ms"] - self._published_ms
        sign = "+" if took_ms >= 0 else "-"
        return f"  {sign}{format_elapsed(abs(took_ms))}"

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
