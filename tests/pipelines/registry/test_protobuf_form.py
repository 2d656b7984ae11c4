"""Descriptors for Spark's own reader: other ones, of the same bytes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.pipelines.source.test_protobuf_decoder import PROTO

from ottla.pipelines.registry.protobuf_form import MARK, MAX_NUMBER, ROOT, form_of
from ottla.pipelines.registry.protobuf_schema import shape_of
from ottla.registry.protobuf_messages import Messages
from ottla.registry.registered import PROTOBUF, Registered

START = 'syntax = "proto3"; '
WITHOUT_JSON = PROTO.replace("  google.protobuf.Struct o = 15;\n", "")


def descriptor(text: str) -> Any:
    return Messages(Registered(7, PROTOBUF, text)).by_name["M"]


def form(text: str) -> Any:
    message = descriptor(text)
    return form_of(message, shape_of(message, "s"))


def read_by(made: Any, data: bytes) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    pool = DescriptorPool()
    (file,) = FileDescriptorSet.FromString(made.files).file
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(ROOT)).FromString(data)


def test_they_read_the_same_bytes() -> None:
    from google.protobuf.message_factory import GetMessageClass

    made = form(WITHOUT_JSON)
    full = GetMessageClass(descriptor(WITHOUT_JSON))(
        a=1, b=0, c=1, d={"x": 2}, e=[{"x": 3}], h=0, k={"value": 2**64 - 1}, l={}, q=[0, 9]
    )
    full.f["k"].x = 4
    full.i.FromJsonString("2013-01-01T05:00:00.000001999Z")
    found = read_by(made, full.SerializeToString() + made.mark(-5))

    assert getattr(found, MARK) == 2**64 - 5
    assert (found.f1, found.f2, found.f3, found.f4.f1, found.f5[0].f1) == (1, 0, 1, 2, 3)
    assert (found.f6[0].f1, found.f6[0].f2.f1) == ("k", 4)
    assert not found.HasField("f7")
    assert found.HasField("f8")
    assert (found.f9.f1, found.f9.f2) == (1_357_016_400, 1_999)
    assert found.f11.f1 == 2**64 - 1
    assert found.HasField("f12")
    assert not found.f12.HasField("f1")  # the wrapper is there, and has its default
    assert list(found.f17) == [0, 9]


def test_the_mark_has_a_number_that_the_message_does_not_use() -> None:
    text = f"message M {{ int32 a = {MAX_NUMBER}; int32 b = {MAX_NUMBER - 1}; }}"
    assert form(START + text).number == MAX_NUMBER - 2


@pytest.mark.parametrize(
    "text",
    [
        PROTO,
        'syntax = "proto2"; message M { required int32 a = 1; }',
        'syntax = "proto2"; message M { optional group G = 1 { optional int32 a = 1; } }',
        'syntax = "proto2"; message M { enum E { A = 1; } optional E e = 1; }',
        'syntax = "proto2"; message N { required int32 a = 1; } message M { repeated N n = 1; }',
    ],
)
def test_what_only_googles_parser_reads(text: str) -> None:
    assert form(text) is None


def test_proto2_without_such_fields() -> None:
    text = (
        'syntax = "proto2"; message M { optional int32 a = 1 [default = 5]; repeated bytes b = 2; }'
    )
    made = form(text)
    assert not read_by(made, b"").HasField("f1")
    assert list(read_by(made, b"\x12\x01x").f2) == [b"x"]
