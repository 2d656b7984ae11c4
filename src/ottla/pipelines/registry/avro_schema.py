"""Avro schemas as Spark's from_avro takes them: one text without references, in an envelope. Pure.

Avro's binary data does not say where it ends, and from_avro makes a struct of nulls of data that
it cannot read. So each value is read as a record of two fields, itself and an end mark that is
appended to its bytes: a record is encoded as its fields, one after the other. Data that is too
short, too long or of another schema has no end mark where it should be.

https://avro.apache.org/docs/1.12.0/specification/
"""

from __future__ import annotations

import json
from typing import Any, Final

from ottla.pipelines.errors import PipelineError
from ottla.registry.registered import Registered

VALUE: Final = "value"
END: Final = "end"
END_BYTES: Final = 8
MAX_DEPTH: Final = 100

_PRIMITIVE: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_NAMED: Final = ("record", "error", "enum", "fixed")
_PLAIN: Final = frozenset((*_PRIMITIVE, *_NAMED, "array", "map"))


def envelope(schema: Registered) -> str:
    """Return the schema of a record of the value and its end mark.

    Raises PipelineError for a text that is no JSON.
    """
    fields = [
        {"name": VALUE, "type": inline(schema)},
        {"name": END, "type": {"type": "fixed", "name": "ottla_end", "size": END_BYTES}},
    ]
    return json.dumps({"type": "record", "name": "ottla_framed", "fields": fields})


def inline(schema: Registered) -> Any:
    """Return a schema with each type that it refers to in place of the type's first use.

    Raises PipelineError for a text that is no JSON.
    """
    referred: dict[str, Any] = {}
    _collect(schema, referred)
    return _Inliner(referred).walk(_parsed(schema), "", 0)


def _parsed(schema: Registered) -> Any:
    text = schema.text.strip()
    try:
        return json.loads(text)
    except ValueError as error:
        if text in _PLAIN:
            return text  # a type's bare name, as some clients register it
        raise PipelineError(f"{schema.shown} is no JSON: {error}") from error


def _collect(schema: Registered, referred: dict[str, Any]) -> None:
    for name, one in schema.references:
        _collect(one, referred)
        referred[name] = _parsed(one)


class _Inliner:
    def __init__(self, referred: dict[str, Any]) -> None:
        self._referred = referred
        self._defined: set[str] = set()

    def walk(self, one: Any, namespace: str, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise PipelineError(f"An Avro schema is nested more than {MAX_DEPTH} deep")
        if isinstance(one, list):
            return [self.walk(choice, namespace, depth + 1) for choice in one]
        if isinstance(one, str):
            return self._use(one, namespace, depth)
        if not isinstance(one, dict):
            return one
        found = dict(one)
        kind = one.get("type")
        if kind in _NAMED:
            full = _full_name(str(one.get("name", "")), one.get("namespace", namespace))
            self._defined.add(full)
            namespace = full.rpartition(".")[0]
        if isinstance(one.get("fields"), list):
            found["fields"] = [
                {**field, "type": self.walk(field.get("type"), namespace, depth + 1)}
                for field in one["fields"]
            ]
        for inner in ("items", "values"):
            if inner in one:
                found[inner] = self.walk(one[inner], namespace, depth + 1)
        if kind not in _PLAIN or isinstance(kind, list | dict):
            found["type"] = self.walk(kind, namespace, depth + 1)
        return found

    def _use(self, name: str, namespace: str, depth: int) -> Any:
        if name in _PLAIN:
            return name
        full = _full_name(name, namespace)
        for candidate in (full, name):
            if candidate not in self._defined and candidate in self._referred:
                definition = self._referred[candidate]
                if isinstance(definition, dict) and "." not in str(definition.get("name", "")):
                    # Without a namespace of its own it would get that of the place it is put in.
                    definition = {"namespace": "", **definition}
                return self.walk(definition, "", depth + 1)
        return full if full in self._defined else name


def _full_name(name: str, namespace: Any) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
