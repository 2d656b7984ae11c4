"""Avro arrays of items that take no bytes: `null`, `fixed` of no bytes, records of such fields.

A block of an array begins with the number of its items. Where these take no bytes, a record of ten
bytes may have 2^60 of them, and the decoder makes as many objects. Such schemas have no use
and are refused. Of any other array the number of items is bounded by the record's bytes. Pure.
"""

from __future__ import annotations

import json
from typing import Any, Final

from ottla.registry.registered import Registered

MAX_DEPTH: Final = 200


def has_empty_items(schema: Registered) -> bool:
    """Whether the schema, or one that it refers to, has such an array. One that cannot be read has
    none: the decoder refuses it.
    """
    return any(has_empty_items(inner) for _, inner in schema.references) or _Search(schema).found


class _Search:
    """One schema's text, with the named types that it defines and refers to."""

    def __init__(self, schema: Registered) -> None:
        self._named: dict[str, Any] = {}
        self.found = False
        try:
            types = [json.loads(each.text) for each in (*_all_references(schema), schema)]
            for each in types:
                self._define(each, "", 0)
            self._look(types[-1], "", 0)
        except (ValueError, RecursionError):
            return

    def _define(self, kind: Any, space: str, depth: int) -> None:
        """Note the named types in a type, in the namespace around it."""
        if depth > MAX_DEPTH:
            return
        if isinstance(kind, list):
            for each in kind:
                self._define(each, space, depth + 1)
        elif isinstance(kind, dict):
            inner = space
            name = kind.get("name")
            if isinstance(name, str) and kind.get("type") in ("record", "error", "fixed", "enum"):
                full = _full(name, kind.get("namespace", space))
                self._named[full] = kind
                inner = full.rpartition(".")[0]
            for each in _inside(kind):
                self._define(each, inner, depth + 1)

    def _look(self, kind: Any, space: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            return
        if isinstance(kind, list):
            for each in kind:
                self._look(each, space, depth + 1)
        elif isinstance(kind, dict):
            space = self._space_of(kind, space)
            if kind.get("type") == "array" and self._is_empty(kind.get("items"), space, ()):
                self.found = True
            for each in _inside(kind):
                self._look(each, space, depth + 1)

    def _is_empty(self, kind: Any, space: str, within: tuple[str, ...]) -> bool:
        """Whether a value of the type takes no bytes."""
        if isinstance(kind, str):
            if kind == "null":
                return True
            full = kind if kind in self._named else _full(kind, space)
            known = self._named.get(full)
            # A record that has itself has no value without an end, or takes bytes.
            return (
                known is not None
                and full not in within
                and self._is_empty(known, full.rpartition(".")[0], (*within, full))
            )
        if not isinstance(kind, dict):
            return False
        of = kind.get("type")
        if of in ("record", "error"):
            space = self._space_of(kind, space)
            return all(
                self._is_empty(each.get("type"), space, within) for each in kind.get("fields") or ()
            )
        if of == "fixed":
            return not kind.get("size")
        # {"type": "null"} and {"type": {"type": ...}}; an array or a map has a byte for its end.
        return of not in ("array", "map", "enum") and self._is_empty(of, space, within)

    @staticmethod
    def _space_of(kind: dict[str, Any], space: str) -> str:
        name = kind.get("name")
        if not isinstance(name, str):
            return space
        return _full(name, kind.get("namespace", space)).rpartition(".")[0]


def _all_references(schema: Registered) -> list[Registered]:
    found = []
    for _, inner in schema.references:
        found += [*_all_references(inner), inner]
    return found


def _inside(kind: dict[str, Any]) -> list[Any]:
    """The types that a type has in it."""
    fields = kind.get("fields")
    found = (
        [each.get("type") for each in fields if isinstance(each, dict)]
        if isinstance(fields, list)
        else []
    )
    return [*found, *(kind[name] for name in ("items", "values", "type") if name in kind)]


def _full(name: str, space: object) -> str:
    return name if "." in name or not isinstance(space, str) or not space else f"{space}.{name}"
