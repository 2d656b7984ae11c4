"""Reads the options of a table by their descriptions (`spec.option`). Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.pipelines.spec.fields import Fields
from ottla.pipelines.spec.option import Option, options_of


def read_options(fields: Fields, kind: type, path: Callable[[str], str]) -> dict[str, Any]:
    """Return what a table gives of a dataclass's options; the rest has its default there.

    `path` makes a path of the file one of the machine. What `other` describes is left out.
    """
    read = {name: _read(fields, one, path) for name, one in options_of(kind).items()}
    return {name: value for name, value in read.items() if value is not None}


def _read(fields: Fields, option: Option, path: Callable[[str], str]) -> Any:
    name = option.name
    if option.kind == "other":
        return None
    if option.kind == "choice":
        return fields.choice(name, option.choices, None)
    if option.kind == "flag":
        given = fields.flag(name)
        return given if fields.has(name) else None
    if option.kind == "count":
        return fields.count(name, at_least=option.at_least)
    if option.kind == "settings":
        return fields.settings(name)
    if option.kind == "conditions":
        return fields.conditions(name)
    if option.kind in ("names", "paths"):
        names = fields.texts(name, option.example)
        return tuple(map(path, names)) if option.kind == "paths" else names
    if option.is_secret:
        value = fields.value(name)
        if value is None or isinstance(value, str):
            return value
        fields.problem(name, "is no text; allowed: text, such as '${LAKE_PASSWORD}'")
        return None
    text = fields.text(name, option.example, required=option.is_required)
    if text is None:
        return "" if option.is_required else None
    return path(text) if option.kind == "path" else text


def tables_of(kinds: dict[str, tuple[type, ...]]) -> dict[str, str]:
    """Return in which table each option belongs; of one name in several, in the last."""
    return {
        name: f"[{table}]"
        for table, several in kinds.items()
        for kind in several
        for name in options_of(kind)
    }
