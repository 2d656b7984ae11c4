"""Arrays of items that take no bytes are found, and others are not."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import fastavro
import pytest

from ottla.registry.avro_items import has_empty_items
from ottla.registry.registered import Registered


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def record(name: str, *types: Any, **more: Any) -> dict[str, Any]:
    fields = [{"name": f"f{at}", "type": each} for at, each in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields, **more}


EMPTY = [
    array("null"),
    array({"type": "null"}),
    array(record("E")),
    array(record("E", "null", record("Inner", "null"))),
    array({"type": "fixed", "name": "F", "size": 0}),
    record("R", "int", array("null")),
    ["null", array("null")],
    {"type": "map", "values": array("null")},
    array(array("null")),
    record("R", record("E", namespace="a.b"), array("a.b.E")),
    record("R", record("E"), array("E"), namespace="a"),
    record("R", {"type": {"type": "array", "items": "null"}}),
]
BOUNDED = [
    array("int"),
    array(["null", "int"]),
    array({"type": "enum", "name": "N", "symbols": ["A"]}),
    array(record("R", "null", "string")),
    array(array("int")),
    array({"type": "map", "values": "null"}),
    array({"type": "fixed", "name": "F", "size": 1}),
    record("Node", "null", array("Node")) | {"fields": [
        {"name": "value", "type": "int"}, {"name": "children", "type": array("Node")},
    ]},
    array({"type": "bytes", "logicalType": "decimal", "precision": 4}),
    record("R", record("E"), "E"),
    "null",
    [],
]  # fmt: skip


@pytest.mark.parametrize("schema", EMPTY, ids=json.dumps)
def test_items_without_bytes(schema: Any) -> None:
    assert has_empty_items(Registered(1, "AVRO", json.dumps(schema)))


@pytest.mark.parametrize("schema", BOUNDED, ids=json.dumps)
def test_items_that_take_bytes(schema: Any) -> None:
    assert not has_empty_items(Registered(1, "AVRO", json.dumps(schema)))


def test_the_items_are_of_another_schema() -> None:
    inner = Registered(1, "AVRO", json.dumps(record("E", namespace="a")))
    outer = Registered(2, "AVRO", json.dumps(array("a.E")), references=(("a.E", inner),))
    assert has_empty_items(outer)
    other = Registered(2, "AVRO", json.dumps("int"), references=(("x", outer),))
    assert has_empty_items(other)


@pytest.mark.parametrize("text", ["{", "[" * 100_000, '{"type": "record", "fields": 5}', "7", ""])
def test_what_is_no_schema_has_none(text: str) -> None:
    assert not has_empty_items(Registered(1, "AVRO", text))


def test_what_they_are_refused_for() -> None:
    """Five bytes, and as many objects as they say."""
    out = BytesIO()
    fastavro.schemaless_writer(out, array("null"), [None] * 100_000)
    assert len(out.getvalue()) < 6
