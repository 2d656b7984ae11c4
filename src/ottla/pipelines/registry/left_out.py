"""Fields that data has by its own schema and the schema to read by lacks. Pure.

All data is read as one type, and what that has no room for is left out: a field that a later
version has removed, or renamed without an alias.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.registry import json_schema
from ottla.registry.registered import AVRO, JSON, Registered


def left_out(reader: Registered, others: Iterable[Registered]) -> dict[str, Registered]:
    """Return the fields of a record or object, at its top, that `reader` leaves out, each with a
    schema that has it.

    Of Protobuf, whose fields are numbers, nothing is known.
    """
    kept = _names(reader, aliases=True)
    if kept is None:
        return {}
    found: dict[str, Registered] = {}
    for one in others:
        if one.format == reader.format:
            lacking = (_names(one, aliases=False) or set()) - kept
            found |= {name: one for name in lacking if name not in found}
    return dict(sorted(found.items()))


def _names(schema: Registered, *, aliases: bool) -> set[str] | None:
    """Return the names of a schema's fields, with the names that they had before or without; None
    where it has no fields that are known.
    """
    if schema.format == AVRO:
        return _of_record(schema.text, aliases=aliases)
    if schema.format != JSON:
        return None
    try:
        kind = json_schema.spark_type(schema)
    except PipelineError:
        return None  # its data is refused
    return {one["name"] for one in kind["fields"]} if isinstance(kind, dict) else None


def _of_record(text: str, *, aliases: bool) -> set[str] | None:
    try:
        document = json.loads(text)
    except ValueError:
        return None  # the bare name of a type
    fields = document.get("fields") if isinstance(document, dict) else None
    if not isinstance(fields, list):
        return None
    names = {one["name"] for one in fields}
    return names | {alias for one in fields for alias in one.get("aliases", ()) if aliases}
