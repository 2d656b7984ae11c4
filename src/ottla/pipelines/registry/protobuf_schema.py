"""Protobuf messages as types of Spark's, and which data a message can read. Pure.

| Protobuf | Spark |
|---|---|
| int32, sint32, sfixed32 | int |
| int64, sint64, sfixed64, uint32, fixed32 | bigint |
| uint64, fixed64 | decimal(20,0) |
| float, double, bool, string, bytes | float, double, boolean, string, binary |
| enum | string: its name, or the number that has none |
| message, repeated, map | struct, array, map |
| Timestamp | timestamp |
| Duration | decimal(21,9): seconds |
| wrappers (Int32Value ...) | the value |
| Struct, Value, ListValue | string, with the JSON as text |

A field without presence has its default where the data lacks it; one with presence (`optional`,
`oneof`, messages) is null there. Messages without fields are left out, as Spark's own reader does.
A shape is what a message is read by, as plain JSON: the columns and the decoder both follow it.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from ottla.pipelines.errors import PipelineError
from ottla.registry.protobuf_messages import is_map, is_repeated

SparkType: TypeAlias = str | dict[str, Any]
Shape: TypeAlias = dict[str, Any]

MAX_DEPTH: Final = 50
_GOOGLE: Final = "google.protobuf."

# By the numbers of FieldDescriptorProto.Type.
_PLAIN: Final = {
    1: "double", 2: "float", 3: "long", 4: "decimal(20,0)", 5: "integer", 6: "decimal(20,0)",
    7: "long", 8: "boolean", 9: "string", 12: "binary", 13: "long", 15: "integer", 16: "long",
    17: "integer", 18: "long",
}  # fmt: skip
_UNSIGNED: Final = (4, 6)
_ENUM: Final = 14
_MESSAGES: Final = (10, 11)
_KNOWN: Final = {
    "Timestamp": ("timestamp", "timestamp"),
    "Duration": ("duration", "decimal(21,9)"),
    **dict.fromkeys(("Struct", "Value", "ListValue"), ("json", "string")),
}
_WRAPPERS: Final = frozenset(
    f"{_GOOGLE}{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)

# Types with the same bytes, in groups; data of one may be read as those after its own bar.
_WIDER: Final = {
    5: (3,), 17: (18,), 13: (4, 3), 8: (5, 13, 3, 4), 14: (5, 3),
    15: (), 7: (), 9: (12,), 12: (9,),
}  # fmt: skip


def shape_of(message: Any, shown: str) -> Shape:
    """Return how a message (its descriptor) is read.

    Raises PipelineError: a message without fields, or one that contains itself.
    """
    found = _message(message, (message.full_name,), "value", shown)
    if found is None:
        raise PipelineError(
            f"{message.full_name} of {shown} has no fields, so it has no columns: take the bytes "
            "with 'binary'"
        )
    return found


def spark_type(shape: Shape) -> SparkType:
    """Return the type of what a shape reads."""
    if shape["kind"] != "struct":
        return str(shape["type"])
    fields = []
    for name, how, inner in shape["fields"]:
        kind: SparkType = spark_type(inner)
        if how == "repeated":
            kind = {"type": "array", "elementType": kind, "containsNull": True}
        elif how == "map":
            key = str(inner["key"])
            kind = {"type": "map", "keyType": key, "valueType": kind, "valueContainsNull": True}
        fields.append({"name": name, "type": kind, "nullable": True, "metadata": {}})
    return {"type": "struct", "fields": fields}


def _message(message: Any, around: tuple[str, ...], path: str, shown: str) -> Shape | None:
    fields = []
    for field in message.fields:
        field_path = f"{path}.{field.name}"
        if is_map(field):
            key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
            inner = _value(value, around, field_path, shown)
            if inner is not None:
                inner = inner | {"key": _PLAIN[key.type], "unsigned": key.type in _UNSIGNED}
            how = "map"
        else:
            inner = _value(field, around, field_path, shown)
            how = "repeated" if is_repeated(field) else "given" if field.has_presence else "plain"
        if inner is not None:
            fields.append([field.name, how, inner])
    return {"kind": "struct", "fields": fields} if fields else None


def _value(field: Any, around: tuple[str, ...], path: str, shown: str) -> Shape | None:
    """Return how one value of a field is read, None for a message without fields."""
    if field.type == _ENUM:
        names = {str(one.number): one.name for one in reversed(field.enum_type.values)}
        return {"kind": "enum", "type": "string", "names": names}
    if field.type not in _MESSAGES:
        kind = "unsigned" if field.type in _UNSIGNED else "plain"
        return {"kind": kind, "type": _PLAIN[field.type]}
    name = field.message_type.full_name
    known = _KNOWN.get(name.removeprefix(_GOOGLE)) if name.startswith(_GOOGLE) else None
    if known is not None:
        return {"kind": known[0], "type": known[1]}
    if name in _WRAPPERS:
        inner = field.message_type.fields_by_name["value"]
        kind = "wrapped unsigned" if inner.type in _UNSIGNED else "wrapped"
        return {"kind": kind, "type": _PLAIN[inner.type]}
    if name in around or len(around) > MAX_DEPTH:
        raise PipelineError(
            f"{shown} has {name} inside of itself ({path}), and a column has an end: take the "
            "bytes with 'binary', or read them by a message without that field"
        )
    return _message(field.message_type, (*around, name), path, shown)


def conflict(reader: Any, writer: Any, path: str) -> str | None:
    """Return why data of the writer's message cannot be read as the reader's, None if it can.

    Protobuf reads data by the numbers of fields, and would give other values without an error.
    """
    return _conflict(reader, writer, path, set())


def _conflict(reader: Any, writer: Any, path: str, seen: set[tuple[str, str]]) -> str | None:
    if (reader.full_name, writer.full_name) in seen:
        return None
    seen.add((reader.full_name, writer.full_name))
    for theirs in writer.fields:
        ours = reader.fields_by_number.get(theirs.number)
        if ours is None:
            continue
        field_path = f"{path}.{ours.name}"
        if is_repeated(theirs) and not is_repeated(ours):
            return f"the field {theirs.number} ({field_path}) is repeated in it, and is one here"
        if ours.type in _MESSAGES and ours.type == theirs.type:
            words = _conflict(ours.message_type, theirs.message_type, field_path, seen)
            if words:
                return words
        elif ours.type != theirs.type and ours.type not in _WIDER.get(theirs.type, ()):
            return f"the field {theirs.number} ({field_path}) has another type in it"
    return None
