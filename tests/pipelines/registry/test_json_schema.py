"""JSON Schema as a type of Spark's."""

import json
import re
from typing import Any

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.registry.json_schema import conflict, spark_type
from ottla.registry.registered import Registered


def ddl(kind: Any) -> str:
    """A type as a short text; `!` stands for NOT NULL."""
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct":
        fields = [
            f"{one['name']}{'' if one['nullable'] else '!'} {ddl(one['type'])}"
            for one in kind["fields"]
        ]
        return f"<{', '.join(fields)}>"
    if kind["type"] == "map":
        return f"map[{ddl(kind['valueType'])}{'' if kind['valueContainsNull'] else '!'}]"
    return f"array[{ddl(kind['elementType'])}{'' if kind['containsNull'] else '!'}]"


def read(schema: Any, *references: tuple[str, Any]) -> str:
    registered = Registered(
        1,
        "JSON",
        json.dumps(schema),
        references=tuple(
            (name, Registered(2, "JSON", json.dumps(one))) for name, one in references
        ),
    )
    return ddl(spark_type(registered))


def of(properties: Any, **more: Any) -> Any:
    return {"type": "object", "properties": properties, **more}


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        (of({"id": {"type": "integer"}}, required=["id"]), "<id! long>"),
        (of({"x": {"type": ["null", "number"]}}, required=["x"]), "<x double>"),
        (of({"x": {"type": ["integer", "number"]}}), "<x double>"),
        (of({"x": {"oneOf": [{"type": "null"}, {"type": "boolean"}]}}), "<x boolean>"),
        (of({"x": {"oneOf": [{"type": "integer"}, {"type": "boolean"}]}}), "<x string>"),
        (of({"x": {"enum": ["a", "b"]}}), "<x string>"),
        (of({"x": True, "y": {}, "z": {"type": "object"}}), "<x string, y string, z string>"),
        (of({"x": {"type": "array", "items": {"type": "string"}}}), "<x array[string!]>"),
        (of({"x": {"type": "array"}}), "<x array[string]>"),
        (
            of({"x": {"type": "object", "additionalProperties": {"type": "integer"}}}),
            "<x map[long!]>",
        ),
        (of({"n": of({"y": {"type": "string"}}, required=["y"])}), "<n <y! string>>"),
        (
            {
                "$ref": "#/$defs/f",
                "$defs": {"f": of({"a": {"$ref": "#/$defs/t"}}), "t": {"type": "string"}},
            },
            "<a string>",
        ),
        (
            {
                "allOf": [
                    {"$ref": "#/definitions/base"},
                    of({"b": {"type": "integer"}}, required=["b"]),
                ],
                "definitions": {"base": of({"a": {"type": "string"}}, required=["a"])},
            },
            "<a! string, b! long>",
        ),
    ],
)  # fmt: skip
def test_types(schema: Any, type_: str) -> None:
    assert read(schema) == type_


def test_a_reference_to_another_subject() -> None:
    schema = of({"plane": {"$ref": "plane.json"}, "tail": {"$ref": "plane.json#/properties/tail"}})
    plane = of({"tail": {"type": "string"}, "seats": {"$ref": "#/$defs/n"}}) | {
        "$defs": {"n": {"type": "integer"}}
    }

    assert read(schema, ("plane.json", plane)) == "<plane <tail string, seats long>, tail string>"


def test_a_schema_that_contains_itself_ends_as_text() -> None:
    found = read(of({"id": {"type": "integer"}, "next": {"$ref": "#"}}))

    assert found.startswith("<id long, next <id long, next <")
    assert "next string" in found


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "is no object with properties"),
        ({"type": "object"}, "is no object with properties"),
        (of({"x": {"$ref": "other.json"}}), "refers to 'other.json', which is not among"),
        (of({"x": {"$ref": "#/$defs/gone"}}), "refers to '#/\\$defs/gone': nothing there"),
    ],
)
def test_what_has_no_columns_is_refused(schema: Any, words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        read(schema)


def test_no_json_is_refused() -> None:
    with pytest.raises(PipelineError, match="schema 1 is no JSON"):
        spark_type(Registered(1, "JSON", "{"))


INTEGER, TEXT = {"type": "integer"}, {"type": "string"}


@pytest.mark.parametrize(
    ("reader", "writer", "words"),
    [
        (of({"a": INTEGER}), of({"a": INTEGER}), None),
        (of({"a": {"type": "number"}}), of({"a": INTEGER}), None),
        (of({"a": TEXT}), of({"a": of({"b": INTEGER})}), None),
        (of({"a": INTEGER, "b": TEXT}), of({"a": INTEGER}), None),
        (of({"a": INTEGER}), of({"b": TEXT}), None),
        (of({"a": INTEGER}), of({"a": TEXT}), "value.a is a string there and an integer here"),
        (
            of({"a": INTEGER}, required=["a"]),
            of({"a": INTEGER}),
            "value may lack a there, which is required here",
        ),
        (
            of({"a": {"type": "array", "items": of({"b": INTEGER})}}),
            of({"a": {"type": "array", "items": of({"b": TEXT})}}),
            r"value.a\[\].b is a string there and an integer here",
        ),
        (of({"a": of({"b": INTEGER})}), of({"a": INTEGER}), "an integer there and an object here"),
    ],
)
def test_conflicts(reader: Any, writer: Any, words: str | None) -> None:
    of_reader, of_writer = (
        spark_type(Registered(1, "JSON", json.dumps(one))) for one in (reader, writer)
    )
    found = conflict(of_reader, of_writer, "value")

    assert (found is None) == (words is None)
    if words:
        assert re.search(words, found or "")
