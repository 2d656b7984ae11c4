"""Protobuf data read by Spark's own reader has the values and reasons that the UDF gives."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from tests.pipelines.source.test_protobuf_decoder import PROTO

from ottla.pipelines.registry.framed import Branch, Framed
from ottla.pipelines.registry.protobuf_schema import shape_of, spark_type
from ottla.pipelines.source import protobuf_column, protobuf_spark
from ottla.pipelines.source.framed_columns import type_of
from ottla.registry.framing import head
from ottla.registry.protobuf_messages import Messages
from ottla.registry.registered import PROTOBUF, Registered

pytestmark = pytest.mark.spark

# All kinds of fields but JSON, which Spark's reader does not have.
KINDS = PROTO.replace("  google.protobuf.Struct o = 15;\n", "").replace(
    "  repeated E q = 17;",
    """  repeated E q = 17;
  bool r = 18; string s = 19; bytes t = 20; float u = 21; double v = 22;
  uint32 w = 23; fixed32 x = 24; sint64 y = 25; repeated uint32 z = 26;
  optional string aa = 27; map<int32, E> bb = 28; repeated google.protobuf.Timestamp cc = 29;
  google.protobuf.UInt32Value dd = 30; google.protobuf.StringValue ee = 31;
  map<string, google.protobuf.Duration> ff = 32; Timestamp gg = 33; fixed64 hh = 34;
  message Timestamp { int64 seconds = 1; int32 nanos = 2; }""",
)
ID = 7
ROWS = 200
AS_TEXT = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS"}


def framed_of(text: str, message: str = "M") -> Framed:
    messages = Messages(Registered(ID, PROTOBUF, text))
    shape = shape_of(messages.by_name[message], "s")
    branch = Branch(ID, protobuf_column.writer_of(messages))
    reader = protobuf_column.reader_of(messages, message, shape)
    return Framed(PROTOBUF, json.dumps(spark_type(shape)), (branch,), reader)


def made(text: str) -> Any:
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(Messages(Registered(ID, PROTOBUF, text)).by_name["M"])


def data(seed: int) -> list[bytes | None]:
    """Messages with fields that are there or not, damaged ones, and other framings."""
    draw, make = random.Random(seed), made(KINDS)
    found: list[bytes | None] = [
        None, head(ID), head(ID) + b"\2\2", head(ID) + b"\4\0\0", head(ID) + b"\2\0\x08\5",
        head(ID) + b"\0", head(ID) + b"\6\0\0\0", head(ID) + b"\x9e", head(ID) + b"\0\x0a\1x",
        head(ID) + b"\0\x9a\1\1\xff", head(ID) + b"\0\xc0\x3e\1",
    ]  # fmt: skip
    for _ in range(ROWS):
        one = make()
        _fill(one, draw)
        body = one.SerializeToString()
        if draw.random() < 0.1:
            body = body + make(f={"k": {"x": 1}}).SerializeToString()  # a key twice
        if draw.random() < 0.2 and body:
            body = body[: draw.randrange(len(body))]
        found.append(head(ID) + b"\0" + body)
    for seconds in (10**15, -(10**15), 253_402_300_800, 253_402_300_799, -62_135_596_800):
        late = make()
        late.i.seconds, late.i.nanos = seconds, 999_999_999
        found.append(head(ID) + b"\0" + late.SerializeToString())
    for seconds in (315_576_000_000, 315_576_000_001, -(2**62)):
        long = make()
        long.ff["k"].seconds = seconds
        found.append(head(ID) + b"\0" + long.SerializeToString())
    return found


def _fill(one: Any, draw: random.Random) -> None:  # noqa: C901
    for field in one.DESCRIPTOR.fields:
        if draw.random() < 0.5:
            continue
        if field.name in ("e", "f", "d"):
            if field.name == "d":
                one.d.x = draw.choice((0, 5))
            elif field.name == "e":
                one.e.add(x=draw.randint(0, 3))
                one.e.add()
            else:
                one.f[draw.choice("ab")].x = 7
                one.f["é"].SetInParent()
        elif field.name in ("i", "j"):
            getattr(one, field.name).seconds = draw.randint(-(10**9), 10**9)
            getattr(one, field.name).nanos = draw.choice((0, 1, 999_999_999, -1_500))
        elif field.name in ("k", "dd"):
            getattr(one, field.name).value = draw.choice((0, 2**32 - 1))
        elif field.name == "l":
            one.l.SetInParent()
        elif field.name == "ee":
            one.ee.value = draw.choice(("", "w"))
        elif field.name == "gg":
            one.gg.seconds = 2**60
        elif field.name == "n":
            one.n[2**63 + draw.randint(0, 1)] = "big"
        elif field.name == "bb":
            one.bb[draw.randint(-1, 1)] = draw.choice((0, 1, 9))
        elif field.name == "cc":
            one.cc.add(seconds=draw.randint(0, 10**9), nanos=1_999)
        elif field.name == "ff":
            one.ff["x"].nanos = 1
        elif field.name in ("p", "z"):
            getattr(one, field.name).extend([0, 2**31 - 1])
        elif field.name == "q":
            one.q.extend([1, 9])
        else:
            values = {"c": (0, 1, 9), "g": ("", "x"), "r": (True,), "s": ("", "ü"), "t": (b"\xff",),
                      "u": (1.5, -0.25), "v": (1e300,), "m": (2**64 - 1, 1), "w": (2**32 - 1, 3),
                      "x": (2**32 - 1,), "aa": ("", "o"), "hh": (2**64 - 1,)}  # fmt: skip
            setattr(one, field.name, draw.choice(values.get(field.name, (0, -3, 2**30))))


def both(spark: Any, framed: Framed, values: list[bytes | None]) -> tuple[list[Any], list[Any]]:
    """Return what the UDF and Spark's own reader make of the data."""
    from pyspark.sql import functions as F  # noqa: N812

    form = protobuf_spark.readable(framed)
    assert form is not None
    frame = spark.createDataFrame([(one,) for one in values], "data binary").coalesce(1)
    column, kind = frame["data"], type_of(framed)
    found = []
    for read in (
        protobuf_column.decoded(column, framed, kind, "value"),
        protobuf_spark.decoded(column, framed, form, kind, "value"),
    ):
        assert frame.select(read.alias("read")).schema["read"].dataType["value"].dataType == kind
        # As text: Python cannot hold each time of the year 1.
        text = F.to_json(F.struct(read.alias("read")), AS_TEXT)
        found.append([json.loads(row[0])["read"] for row in frame.select(text).collect()])
    return found[0], found[1]


def test_sparks_reader_is_used_where_it_is(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf_spark, "first_class", lambda *_: None)
    assert protobuf_spark.readable(framed_of(KINDS)) is None
    monkeypatch.setattr(protobuf_spark, "first_class", lambda _, names: names[0])
    assert protobuf_spark.readable(framed_of(KINDS)) is not None
    assert protobuf_spark.readable(framed_of(PROTO)) is None  # it has JSON


def test_spark_reads_what_the_udf_reads(spark: Any) -> None:
    framed = framed_of(KINDS)
    if protobuf_spark.readable(framed) is None:
        pytest.skip("no spark-protobuf for this Spark")
    for seed in range(3):
        values = data(seed)
        for one, by_udf, by_spark in zip(values, *both(spark, framed, values), strict=True):
            assert by_spark == by_udf, one
