"""Messages as types of Spark's, and the changes of a message that lose nothing."""

from typing import Any

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.registry.protobuf_schema import conflict, shape_of, spark_type
from ottla.registry.protobuf_messages import Messages
from ottla.registry.registered import PROTOBUF, Registered

START = """syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/empty.proto";
"""


def message(text: str, start: str = START, name: str = "M") -> Any:
    return Messages(Registered(1, PROTOBUF, start + text)).by_name[name]


def columns(text: str) -> dict[str, object]:
    found = spark_type(shape_of(message(text), "s"))
    assert isinstance(found, dict)
    return {one["name"]: one["type"] for one in found["fields"]}


def test_each_type_has_a_column() -> None:
    assert columns(
        "enum E { NONE = 0; } message M { int32 a = 1; sint64 b = 2; uint32 c = 3; fixed64 d = 4;"
        "float e = 5; double f = 6; bool g = 7; string h = 8; bytes i = 9; E j = 10; uint64 k = 11;"
        "google.protobuf.Timestamp l = 12; google.protobuf.Duration m = 13;"
        "google.protobuf.UInt64Value n = 14; google.protobuf.StringValue o = 15;"
        "google.protobuf.Struct p = 16; google.protobuf.Empty q = 17; }"
    ) == {
        "a": "integer", "b": "long", "c": "long", "d": "decimal(20,0)", "e": "float",
        "f": "double", "g": "boolean", "h": "string", "i": "binary", "j": "string",
        "k": "decimal(20,0)", "l": "timestamp", "m": "decimal(21,9)", "n": "decimal(20,0)",
        "o": "string", "p": "string",
    }  # fmt: skip


def test_messages_nest_in_structs_arrays_and_maps() -> None:
    inner = {"type": "struct", "fields": [
        {"name": "x", "type": "integer", "nullable": True, "metadata": {}}
    ]}  # fmt: skip
    assert columns(
        "message I { int32 x = 1; } message M { I a = 1; repeated I b = 2; map<uint64, I> c = 3;"
        "repeated string d = 4; }"
    ) == {
        "a": inner,
        "b": {"type": "array", "elementType": inner, "containsNull": True},
        "c": {
            "type": "map", "keyType": "decimal(20,0)", "valueType": inner,
            "valueContainsNull": True,
        },
        "d": {"type": "array", "elementType": "string", "containsNull": True},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "message M { N n = 1; } message N { M m = 1; }",
            r"s has M inside of itself \(value\.n\.m",
        ),
        ("message M { repeated M m = 1; }", r"s has M inside of itself \(value\.m\)"),
        ("message M {}", "M of s has no fields, so it has no columns"),
    ],
)
def test_a_message_without_an_end_or_a_field_is_refused(text: str, reason: str) -> None:
    with pytest.raises(PipelineError, match=reason):
        shape_of(message(text), "s")


@pytest.mark.parametrize(
    ("reader", "writer", "words"),
    [
        ("int64 a = 1; string b = 2;", "int32 a = 1; int32 c = 3;", None),
        ("bytes a = 1;", "string a = 1;", None),
        ("repeated int32 a = 1;", "int32 a = 1;", None),
        ("M a = 1; int64 b = 2;", "M a = 1; bool b = 2;", None),
        ("int32 a = 1;", "int64 a = 1;", r"the field 1 \(value.a\) has another type"),
        ("sint64 a = 1;", "int64 a = 1;", "another type"),
        ("string a = 1;", "int32 a = 1;", "another type"),
        ("int32 a = 1;", "repeated int32 a = 1;", "is repeated in it"),
        ("message I { int32 x = 1; } I a = 1;", "message I { string x = 1; } I a = 1;",
         r"the field 1 \(value.a.x\)"),
    ],
)  # fmt: skip
def test_a_change_that_would_give_other_values_is_named(
    reader: str, writer: str, words: str | None
) -> None:
    of_reader, of_writer = (
        message(f"message M {{ {one} }}", 'syntax = "proto3"; ') for one in (reader, writer)
    )
    found = conflict(of_reader, of_writer, "value")
    if words is None:
        assert found is None
    else:
        import re

        assert re.search(words, found or "")
