"""Strict fields: each is asked for by name and type, and all others are unknown. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ottla.pipelines.spec.problem import Problem

_TYPES: Final = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
}
_MAX_SHOWN: Final = 60


class Fields:
    """One table of a file. Problems are collected; a field with one has its default."""

    def __init__(self, table: Mapping[str, Any], where: str, problems: list[Problem]) -> None:
        self._table = table
        self._where = where
        self._problems = problems
        self._known: list[str] = []

    def path_of(self, name: str = "") -> str:
        """The full name of a field, such as `source.topic`."""
        return ".".join(part for part in (self._where, name) if part)

    def problem(self, name: str, message: str) -> None:
        self._problems.append(Problem(self.path_of(name), message))

    def has(self, name: str) -> bool:
        return name in self._table

    def value(self, name: str) -> Any:
        """The field as it is, None where it is missing; its type is the caller's to check."""
        self._known.append(name)
        return self._table.get(name)

    def text(self, name: str, example: str = "", *, required: bool = False) -> str | None:
        """A text that is not empty."""
        value = self.value(name)
        if value is None:
            if required:
                self.problem(name, f"is missing{_such_as(example)}")
            return None
        if not isinstance(value, str):
            self._wrong_type(name, value, f"text{_such_as(example)}")
            return None
        if not value.strip():
            self.problem(name, f"is empty{_such_as(example)}")
            return None
        return value

    def choice(self, name: str, allowed: Sequence[str], default: str | None) -> str | None:
        """One of a few words."""
        value = self.value(name)
        if value is None:
            return default
        if value not in allowed:
            near = nearest(value, allowed) if isinstance(value, str) else None
            hint = f"; did you mean {near!r}?" if near else ""
            self.problem(name, f"{shown(value)} is not allowed; allowed: {listed(allowed)}{hint}")
            return default
        assert isinstance(value, str)
        return value

    def flag(self, name: str) -> bool:
        """True or false; false where it is missing."""
        value = self.value(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        self._wrong_type(name, value, "true or false")
        return False

    def count(self, name: str, *, at_least: int) -> int | None:
        """A whole number."""
        value = self.value(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            self._wrong_type(name, value, f"a whole number from {at_least}")
            return None
        if value < at_least:
            self.problem(name, f"{value} is too small; allowed: whole numbers from {at_least}")
            return None
        return value

    def texts(self, name: str, example: str) -> tuple[str, ...]:
        """A list of texts, or one text."""
        value = self.value(name)
        if value is None:
            return ()
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list) or not all(
            isinstance(one, str) and one.strip() for one in value
        ):
            self._wrong_type(name, value, f"a list of texts, such as [{example}]")
            return ()
        return tuple(value)

    def settings(self, name: str) -> tuple[tuple[str, str], ...]:
        """A table of settings with texts, numbers or truth values; `a.b = 1` is the name `a.b`."""
        value = self.value(name)
        if value is None:
            return ()
        if not isinstance(value, dict):
            self._wrong_type(name, value, "a table of settings")
            return ()
        found: dict[str, str] = {}
        for setting, given in _flat(value):
            if isinstance(given, bool):
                found[setting] = str(given).lower()
            elif isinstance(given, str | int | float):
                found[setting] = str(given)
            else:
                self._wrong_type(f"{name}.{setting}", given, "text, a number, true or false")
        return tuple(found.items())

    def conditions(self, name: str) -> tuple[tuple[str, str], ...]:
        """A table of texts by name."""
        value = self.value(name)
        if value is None:
            return ()
        if not isinstance(value, dict):
            self._wrong_type(name, value, "a table of conditions as SQL, by name")
            return ()
        for one, text in value.items():
            if not isinstance(text, str) or not text.strip():
                self._wrong_type(f"{name}.{one}", text, "a condition as SQL, such as 'delay < 9'")
        return tuple((one, text) for one, text in value.items() if isinstance(text, str))

    def table(self, name: str, *, required: bool = False) -> Fields:
        """A table below this one; an empty one where it is missing."""
        value = self.value(name)
        if value is None and required:
            self.problem(name, f"the table [{self.path_of(name)}] is missing")
        if value is not None and not isinstance(value, dict):
            self._wrong_type(name, value, f"a table: [{self.path_of(name)}]")
        return Fields(value if isinstance(value, dict) else {}, self.path_of(name), self._problems)

    def names(self) -> list[str]:
        """All names that the table has."""
        return list(self._table)

    def end(self, elsewhere: Mapping[str, str] | None = None) -> None:
        """Report the unknown fields. `elsewhere`: known names and their tables."""
        for name in self._table:
            if name in self._known:
                continue
            other = (elsewhere or {}).get(name)
            near = nearest(name, self._known)
            if other:
                hint = f"it belongs in {other}"
            elif near:
                hint = f"did you mean {near!r}?"
            else:
                hint = f"known: {', '.join(sorted(self._known))}"
            self.problem(name, f"there is no such field; {hint}")

    def _wrong_type(self, name: str, value: Any, allowed: str) -> None:
        kind = _TYPES.get(type(value), type(value).__name__)
        self.problem(name, f"{shown(value)} is {kind}; allowed: {allowed}")


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word that was most likely meant, or None."""
    matches = difflib.get_close_matches(word.lower().replace("-", "_"), known, n=1, cutoff=0.6)
    return matches[0] if matches else None


def listed(words: Sequence[str]) -> str:
    return ", ".join(map(repr, words))


def shown(value: Any) -> str:
    """A value for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def _such_as(example: str) -> str:
    return f", such as {example!r}" if example else ""


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
