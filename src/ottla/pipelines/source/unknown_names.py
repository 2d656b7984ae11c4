"""The names of a JSON object's fields that its schema lacks, found without Spark. Pure.

The names are those of `unknown`: a field inside of another one is "n.x", "a[].x" or "m{}.x".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ottla.pipelines.source.ddl import Kind


def unknown_names(text: bytes, kind: Kind) -> tuple[str, ...] | None:
    """Return the unknown fields, each once; None for what Python does not read as an object."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    return unknown_in(document, kind)


def unknown_in(document: dict[str, Any], kind: Kind) -> tuple[str, ...]:
    """Return the unknown fields of an object: its own, then those inside of its fields."""
    return tuple(dict.fromkeys(_of_object(document, kind, "")))


def _of_object(document: dict[str, Any], kind: Kind, path: str) -> Iterator[str]:
    known = {field.name: field.kind for field in kind.fields}
    yield from (f"{path}{name}" for name in document if name not in known)
    for name, inner in known.items():
        yield from _inside(document.get(name), inner, f"{path}{name}")


def _inside(value: Any, kind: Kind, path: str) -> Iterator[str]:
    if kind.name == "struct" and isinstance(value, dict):
        yield from _of_object(value, kind, f"{path}.")
    elif kind.name == "array" and isinstance(value, list):
        for one in value:
            yield from _inside(one, kind.fields[0].kind, f"{path}[]")
    elif kind.name == "map" and isinstance(value, dict):
        for one in value.values():
            yield from _inside(one, kind.fields[1].kind, f"{path}{{}}")
