"""JSON Schema as a type of Spark's. Pure; types are Spark's own JSON (`DataType.jsonValue`).

| JSON Schema | Spark |
|---|---|
| object with properties | struct; a property that is required, and not nullable, is NOT NULL |
| object with additionalProperties alone | map<string, ...> |
| array with one schema of items | array |
| integer, number, boolean, string | bigint, double, boolean, string |
| a type or null | that type |
| allOf | the properties of all |
| everything else, such as oneOf two objects | string, with the JSON as text |

https://json-schema.org/understanding-json-schema/
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from ottla.pipelines.errors import PipelineError
from ottla.registry.registered import Registered

SparkType: TypeAlias = str | dict[str, Any]

MAX_DEPTH: Final = 32
_PLAIN: Final = {"integer": "long", "number": "double", "boolean": "boolean", "string": "string"}
_TEXT: Final = "string"


def spark_type(schema: Registered) -> SparkType:
    """Return the struct for a JSON Schema.

    Raises PipelineError: text that is no JSON, a schema of something else than an object, a
    reference that is not there.
    """
    try:
        root = json.loads(schema.text)
    except ValueError as error:
        raise PipelineError(f"{schema.shown} is no JSON: {error}") from error
    found, _ = _Reader(schema).read(root, root, schema, 0)
    if not isinstance(found, dict) or found["type"] != "struct":
        raise PipelineError(
            f"{schema.shown} is no object with properties, so it has no columns: take the bytes "
            "with 'binary' and parse them in the query"
        )
    return found


class _Reader:
    def __init__(self, schema: Registered) -> None:
        self._schema = schema

    def read(self, one: Any, root: Any, owner: Registered, depth: int) -> tuple[SparkType, bool]:
        """Return the type of a schema inside of `root`, and whether null is allowed."""
        if depth > MAX_DEPTH:
            return _TEXT, True  # a schema that contains itself: JSON as text from there on
        if not isinstance(one, Mapping):
            return _TEXT, True
        if "$ref" in one:
            target, root, owner = self._resolve(str(one["$ref"]), root, owner)
            return self.read(target, root, owner, depth + 1)
        for word in ("oneOf", "anyOf"):
            if isinstance(one.get(word), list):
                return self._one_of(one[word], root, owner, depth)
        if isinstance(one.get("allOf"), list):
            one = self._merged(one, root, owner, depth)
        kinds = one.get("type")
        named = [kinds] if isinstance(kinds, str) else list(kinds or ())
        nullable = "null" in named
        named = [kind for kind in named if kind != "null"]
        if not named and "properties" in one:
            named = ["object"]
        if set(named) == {"integer", "number"}:
            named = ["number"]
        if len(named) != 1:
            return _TEXT, nullable or not named
        return self._of_kind(named[0], one, root, owner, depth), nullable

    def _of_kind(
        self, kind: str, one: Mapping[str, Any], root: Any, owner: Registered, depth: int
    ) -> SparkType:
        if kind == "array":
            items = one.get("items")
            element, nullable = self.read(items, root, owner, depth + 1)
            return {"type": "array", "elementType": element, "containsNull": nullable}
        if kind != "object":
            return _PLAIN.get(kind, _TEXT)
        properties = one.get("properties")
        if properties:
            return self._struct(properties, one.get("required") or (), root, owner, depth)
        more = one.get("additionalProperties")
        if not isinstance(more, Mapping):
            return _TEXT
        value, nullable = self.read(more, root, owner, depth + 1)
        return {
            "type": "map",
            "keyType": "string",
            "valueType": value,
            "valueContainsNull": nullable,
        }

    def _struct(
        self, properties: Mapping[str, Any], required: Any, root: Any, owner: Registered, depth: int
    ) -> SparkType:
        fields = []
        for name, below in properties.items():
            type_, nullable = self.read(below, root, owner, depth + 1)
            fields.append(
                {
                    "name": name,
                    "type": type_,
                    "nullable": nullable or name not in required,
                    "metadata": {},
                }
            )
        return {"type": "struct", "fields": fields}

    def _one_of(
        self, choices: list[Any], root: Any, owner: Registered, depth: int
    ) -> tuple[SparkType, bool]:
        read = [
            self.read(choice, root, owner, depth + 1)
            for choice in choices
            if not (isinstance(choice, Mapping) and choice.get("type") == "null")
        ]
        nullable = len(read) < len(choices) or any(null for _, null in read)
        kinds = {json.dumps(kind, sort_keys=True) for kind, _ in read}
        return (read[0][0] if len(kinds) == 1 else _TEXT), nullable

    def _merged(
        self, one: Mapping[str, Any], root: Any, owner: Registered, depth: int
    ) -> dict[str, Any]:
        """Return a schema with the properties of all of its parts that `root` has itself."""
        merged = {name: value for name, value in one.items() if name != "allOf"}
        properties = dict(merged.get("properties") or {})
        required = list(merged.get("required") or ())
        for part in one["allOf"]:
            if depth > MAX_DEPTH or not isinstance(part, Mapping):
                continue
            if "$ref" in part:
                part, part_root, part_owner = self._resolve(str(part["$ref"]), root, owner)
                if part_root is not root:
                    part = _absolute(part, part_root, part_owner)
            if isinstance(part, Mapping) and isinstance(part.get("allOf"), list):
                part = self._merged(part, root, owner, depth + 1)
            if isinstance(part, Mapping):
                properties |= part.get("properties") or {}
                required += part.get("required") or ()
                if "type" in part:
                    merged.setdefault("type", part["type"])
        return merged | {"properties": properties, "required": required}

    def _resolve(self, reference: str, root: Any, owner: Registered) -> tuple[Any, Any, Registered]:
        """Return what `#/$defs/X` or `other.json#/...` names, with the document it is in."""
        name, _, pointer = reference.partition("#")
        if name:
            found = next(
                (one for key, one in owner.references if key == name or name.endswith(f"/{key}")),
                None,
            )
            if found is None:
                raise PipelineError(
                    f"{self._schema.shown} refers to {name!r}, which is not among its references"
                )
            owner, root = found, json.loads(found.text)
        target = root
        for step in pointer.strip("/").split("/") if pointer.strip("/") else ():
            step = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, Mapping) or step not in target:
                raise PipelineError(f"{self._schema.shown} refers to {reference!r}: nothing there")
            target = target[step]
        return target, root, owner


def _absolute(part: Any, root: Any, owner: Registered) -> Any:
    """Return a part of another document without its own references: those become any JSON."""
    if isinstance(part, Mapping):
        return {
            name: _absolute(value, root, owner)
            for name, value in part.items()
            if name not in ("$ref", "$defs", "definitions")
        }
    return [_absolute(one, root, owner) for one in part] if isinstance(part, list) else part


def conflict(reader: SparkType, writer: SparkType, path: str) -> str | None:
    """Return why data of one type cannot be read as another, None where it can.

    Any JSON can be read as text, and a whole number as a number. A field that the reader needs
    must be one that every writer writes.
    """
    if reader in (_TEXT, writer) or (reader, writer) == ("double", "long"):
        return None
    if isinstance(reader, str) or isinstance(writer, str):
        return f"{path} is {_shown(writer)} there and {_shown(reader)} here"
    if reader["type"] != writer["type"]:
        return f"{path} is {_shown(writer)} there and {_shown(reader)} here"
    if reader["type"] == "array":
        return conflict(reader["elementType"], writer["elementType"], f"{path}[]")
    if reader["type"] == "map":
        return conflict(reader["valueType"], writer["valueType"], f"{path}{{}}")
    written = {field["name"]: field for field in writer["fields"]}
    for field in reader["fields"]:
        name = field["name"]
        given = written.get(name)
        if not field["nullable"] and (given is None or given["nullable"]):
            return f"{path} may lack {name} there, which is required here"
        if given is not None and (
            found := conflict(field["type"], given["type"], f"{path}.{name}")
        ):
            return found
    return None


def _shown(kind: SparkType) -> str:
    if isinstance(kind, str):
        return {"long": "an integer", "double": "a number"}.get(kind, f"a {kind}")
    return {"struct": "an object", "map": "a map"}.get(kind["type"], "an array")
