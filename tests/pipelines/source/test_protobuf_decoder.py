"""Protobuf data as rows of Spark's, without Spark."""

import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from ottla.pipelines.failures.marks import NO_PROTOBUF
from ottla.pipelines.registry.protobuf_schema import shape_of
from ottla.pipelines.source.protobuf_decoder import decoder
from ottla.registry.protobuf_messages import Messages
from ottla.registry.registered import PROTOBUF, Registered

PROTO = """syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
message M {
  enum E { NONE = 0; LATE = 1; }
  message I { int32 x = 1; }
  int64 a = 1;
  optional int32 b = 2;
  E c = 3;
  I d = 4;
  repeated I e = 5;
  map<string, I> f = 6;
  oneof cause { string g = 7; int32 h = 8; }
  google.protobuf.Timestamp i = 9;
  google.protobuf.Duration j = 10;
  google.protobuf.UInt64Value k = 11;
  google.protobuf.BoolValue l = 12;
  uint64 m = 13;
  map<uint64, string> n = 14;
  google.protobuf.Struct o = 15;
  repeated int32 p = 16;
  repeated E q = 17;
}
"""
HEAD = b"\0\0\0\0\7"


def parts(text: str) -> tuple[Any, Any]:
    """The class of the message M, and the decoder that reads it."""
    from google.protobuf.message_factory import GetMessageClass

    messages = Messages(Registered(7, PROTOBUF, text))
    message = messages.by_name["M"]
    names = {at: one.full_name for at, one in messages.by_index.items()}
    read = decoder("value", messages.files, "M", shape_of(message, "s"), {HEAD: names})
    return GetMessageClass(message), read


def test_every_kind_of_field() -> None:
    made, read = parts(PROTO)
    full = made(a=1, b=0, c=1, d={"x": 2}, e=[{"x": 3}], h=0, k={"value": 2**64 - 1}, l={},
                m=2**64 - 1, p=[1, 2], q=[0, 9])  # fmt: skip
    full.f["k"].x = 4
    full.n[2**63] = "big"
    full.i.FromJsonString("2013-01-01T05:00:00.000001999Z")
    full.j.FromJsonString("-1.000000001s")
    full.o.update({"a": [1, "é"]})

    value, fault = read(HEAD + b"\0" + full.SerializeToString())

    assert fault is None
    assert value == (
        1, 0, "LATE", (2,), [(3,)], {"k": (4,)}, None, 0,
        datetime(2013, 1, 1, 5, 0, 0, 1, tzinfo=UTC), Decimal("-1.000000001"), Decimal(2**64 - 1),
        False, Decimal(2**64 - 1), {Decimal(2**63): "big"}, '{"a": [1.0, "é"]}', [1, 2],
        ["NONE", "9"],
    )  # fmt: skip


def test_what_the_data_lacks_is_its_default_or_null() -> None:
    _, read = parts(PROTO)
    nothing: tuple[Any, ...] = (
        0,
        None,
        "NONE",
        None,
        [],
        {},
        *[None] * 6,
        Decimal(0),
        {},
        None,
        [],
        [],
    )
    assert read(HEAD + b"\0") == (nothing, None)


def test_data_that_is_not_of_the_message_gets_a_reason() -> None:
    made, read = parts(PROTO)
    late = made()
    late.i.seconds = 10**15
    long = made()
    long.j.seconds = 10**12
    for data, reason in (
        (b"", "value has Protobuf's framing damaged: no message indexes"),
        (b"\x02\x02", "value has Protobuf's framing damaged: its indexes name no message of its"),
        (
            b"\xff",
            "value has Protobuf's framing damaged: its indexes name no message of its schema",
        ),
        (b"\0\x0a\x01x", "value is not Protobuf data of M: it is damaged"),
        (
            b"\0" + long.SerializeToString(),
            "value has a time outside of the years 1 to 9999, or a d",
        ),
        (b"\x04\x00\x00", "value is M.I, not M, by which the column is read"),
        (b"\0\xff", "value is not Protobuf data of M: it is damaged"),
        (b"\0" + late.SerializeToString(), "value has a time outside of the years 1 to 9999"),
    ):
        value, fault = read(HEAD + data)
        assert value is None
        assert fault.startswith(reason)


def test_a_required_field_is_named() -> None:
    _, read = parts('syntax = "proto2"; message M { required int32 a = 1; optional int32 b = 2; }')
    assert read(HEAD + b"\0\x10\x01") == (None, "value lacks the field a, which is required")
    assert read(HEAD + b"\0\x08\x01") == ((1, None), None)


def test_other_ids_and_null_are_for_others() -> None:
    _, read = parts(PROTO)
    assert read(None) is None
    assert read(b"") is None
    assert read(b"\0\0\0\0\x08\0") is None


def test_an_executor_without_protobuf_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    _, read = parts(PROTO)
    monkeypatch.setitem(sys.modules, "google.protobuf.descriptor_pb2", None)
    with pytest.raises(RuntimeError, match=f"^{NO_PROTOBUF}: .*pip install protobuf$"):
        read(HEAD + b"\0")


def test_an_executor_without_ottla_decodes() -> None:
    from ottla.pipelines.source.protobuf_column import by_value

    _, read = parts(PROTO)
    run = (
        "import sys, pickle; sys.modules['ottla'] = None; "
        "print(pickle.loads(sys.stdin.buffer.read())(bytes([0, 0, 0, 0, 7, 0, 8, 5]))[0][0])"
    )
    done = subprocess.run([sys.executable, "-c", run], input=by_value(read), capture_output=True)
    assert done.stdout == b"5\n", done.stderr.decode()
