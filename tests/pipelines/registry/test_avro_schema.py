"""Avro schemas in their envelope, with what they refer to; fastavro reads what they give."""

import io
import json
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.registry.avro_schema import envelope, inline
from ottla.registry.registered import Registered

PLANE = {
    "type": "record",
    "name": "Plane",
    "namespace": "air",
    "fields": [{"name": "tail", "type": "string"}],
}


def registered(schema: Any, *references: tuple[str, Registered]) -> Registered:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return Registered(1, "AVRO", text, references=references)


def encoded(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(schema), value)
    return out.getvalue()


def test_data_and_its_end_mark_are_a_record_of_the_envelope() -> None:
    data = encoded(PLANE, {"tail": "N1"}) + b"12345678"
    schema = parse_schema(json.loads(envelope(registered(PLANE))))

    read = schemaless_reader(io.BytesIO(data), schema)

    assert read == {"value": {"tail": "N1"}, "end": b"12345678"}


@pytest.mark.parametrize("schema", ["string", '"string"', '{"type": "string"}'])
def test_a_plain_type(schema: str) -> None:
    parsed = parse_schema(json.loads(envelope(registered(schema))))
    data = encoded("string", "N1") + b"12345678"
    read: Any = schemaless_reader(io.BytesIO(data), parsed)
    assert read["value"] == "N1"


def test_references_are_put_in_at_their_first_use() -> None:
    flight = {
        "type": "record",
        "name": "Flight",
        "namespace": "air",
        "fields": [
            {"name": "plane", "type": "Plane"},
            {"name": "spares", "type": {"type": "array", "items": "air.Plane"}},
            {"name": "next", "type": ["null", "Flight"]},
        ],
    }
    schema = inline(registered(flight, ("air.Plane", registered(PLANE))))

    assert schema["fields"][0]["type"] == PLANE
    assert schema["fields"][1]["type"]["items"] == "air.Plane"
    parse_schema(schema)


def test_a_reference_without_a_namespace_keeps_none() -> None:
    bare = {"type": "enum", "name": "Kind", "symbols": ["A"]}
    outer = {
        "type": "record",
        "name": "R",
        "namespace": "n",
        "fields": [{"name": "k", "type": "Kind"}, {"name": "l", "type": "Kind"}],
    }
    schema = inline(registered(outer, ("Kind", registered(bare))))

    assert schema["fields"][0]["type"]["namespace"] == ""


def test_references_of_references() -> None:
    seat = {"type": "record", "name": "a.Seat", "fields": [{"name": "no", "type": "int"}]}
    plane = {"type": "record", "name": "a.Plane", "fields": [{"name": "s", "type": "a.Seat"}]}
    flight = {"type": "record", "name": "a.Flight", "fields": [{"name": "p", "type": "a.Plane"}]}
    middle = registered(plane, ("a.Seat", registered(seat)))

    schema = inline(registered(flight, ("a.Plane", middle)))

    data = encoded(schema, {"p": {"s": {"no": 3}}})
    assert schemaless_reader(io.BytesIO(data), parse_schema(schema)) == {"p": {"s": {"no": 3}}}


def test_no_json_is_refused() -> None:
    with pytest.raises(PipelineError, match="schema 1 is no JSON"):
        envelope(registered("{"))
