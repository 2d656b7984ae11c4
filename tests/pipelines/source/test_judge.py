"""Whether a record parses, judged without Spark: certain, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.pipelines.source.ddl import read_ddl
from ottla.pipelines.source.judge import NOT_CHECKED, PARSES, judge, judge_all, without_value
from ottla.pipelines.source.words import DAY

OBJECT = (
    "id BIGINT NOT NULL, s STRING, i INT, t TINYINT, d DOUBLE, f FLOAT, b BOOLEAN, "
    "dec DECIMAL(5,2), at TIMESTAMP, day DATE, n STRUCT<x: INT NOT NULL>, a ARRAY<INT>, "
    "m MAP<STRING, INT>"
)
NO_OBJECT = "value is not a JSON object of the schema"
JUDGED: list[tuple[bytes | None, str, str | None]] = [
    (b'{"id": 1}', OBJECT, PARSES),
    (b'  {"id": 1, "s": "x", "more": [1, {"y": null}]}\n', OBJECT, PARSES),
    (b'{"id": 1, "s": 5, "i": -7, "t": 127, "d": 1, "f": 2.5, "b": true}', OBJECT, PARSES),
    (b'{"id": 1, "s": {"any": [1]}, "dec": 123}', OBJECT, PARSES),
    (b'{"id": 1, "at": "2013-01-01T05:00:00Z", "day": "2013-01-01"}', OBJECT, PARSES),
    (b'{"id": 1, "at": "2013-01-01T05:00:00.125+01:00"}', OBJECT, PARSES),
    (b'{"id": 1, "n": {"x": 1}, "a": [1, 2], "i": null}', OBJECT, PARSES),
    (b"UA1545", OBJECT, NO_OBJECT),
    (b"N14228", OBJECT, NO_OBJECT),
    (b"nan", OBJECT, NO_OBJECT),
    (b"17", OBJECT, NO_OBJECT),
    (b"1.5", OBJECT, NO_OBJECT),
    (b"true", OBJECT, NO_OBJECT),
    (b'"text"', OBJECT, NO_OBJECT),
    (b"2013-01-01", OBJECT, NO_OBJECT),
    (b"a,b,c", OBJECT, NO_OBJECT),
    (b"<xml/>", OBJECT, NO_OBJECT),
    (b"", OBJECT, NO_OBJECT),
    (b"  ", OBJECT, NO_OBJECT),
    (b"\xff\xfe", OBJECT, NO_OBJECT),
    (b'{"id": 1', OBJECT, NO_OBJECT),
    (b'{"id": 1,}', OBJECT, NO_OBJECT),
    (b"{id: 1}", OBJECT, NO_OBJECT),
    (b'{"id": 01}', OBJECT, NO_OBJECT),
    (b'{"id": +1}', OBJECT, NO_OBJECT),
    (b'{"id": 1, "s": "a\nb"}', OBJECT, NO_OBJECT),
    (b'{"id": 1 /* no */}', OBJECT, NO_OBJECT),
    (b'{"s": "a"}', OBJECT, "value lacks the field id, which is NOT NULL"),
    (b'{"id": null}', OBJECT, "value lacks the field id, which is NOT NULL"),
    (b'{"id": "one"}', OBJECT, "value.id is not a bigint"),
    (b'{"id": 1.5}', OBJECT, "value.id is not a bigint"),
    (b'{"id": true}', OBJECT, "value.id is not a bigint"),
    (b'{"id": [1]}', OBJECT, "value.id is not a bigint"),
    (b'{"id": 1, "i": "1"}', OBJECT, "value.i is not a int"),
    (b'{"id": 1, "d": "high"}', OBJECT, "value.d is not a double"),
    (b'{"id": 1, "b": "yes"}', OBJECT, "value.b is not a boolean"),
    (b'{"i": "x", "s": "no id"}', OBJECT, "value.i is not a int"),
    (b'\0\0\0\0\7{"id": 1}', OBJECT, "value begins with the framing of a schema registry"),
    (b"{'id': 1}", OBJECT, NOT_CHECKED),
    (b'{"id": NaN}', OBJECT, NOT_CHECKED),
    (b'{"id": 1, "id": 2}', OBJECT, NOT_CHECKED),
    (b'{"id": 1} {"id": 2}', OBJECT, NOT_CHECKED),
    (b'{"id": 1, "t": 200}', OBJECT, "value.t does not fit a tinyint"),
    (b'{"id": 1, "t": 300}', OBJECT, NOT_CHECKED),
    (b'{"id": 1, "d": 1e999}', OBJECT, "value.d does not fit a floating-point number"),
    (b'{"id": 1, "f": 1e39}', OBJECT, "value.f does not fit a floating-point number"),
    (b'{"id": 1, "f": 3.402e38}', OBJECT, NOT_CHECKED),
    (b'{"id": 1, "dec": "1,5"}', OBJECT, "value.dec is not a decimal(5,2) without a comma"),
    (b'{"id": 1, "dec": 1.239}', OBJECT, "value.dec is not a decimal(5,2) without rounding"),
    (b'{"id": 1, "dec": "-1.239"}', OBJECT, "value.dec is not a decimal(5,2) without rounding"),
    (b'{"id": 1, "dec": 1.2500}', OBJECT, PARSES),
    (b'{"id": 1, "dec": "1.25"}', OBJECT, PARSES),
    (b'{"id": 1, "dec": 999.999}', OBJECT, NOT_CHECKED),
    (b'{"id": 1, "dec": 1e0}', OBJECT, NOT_CHECKED),
    (b'{"id": 1, "at": "12:30"}', OBJECT, f"value.at is not a timestamp {DAY}"),
    (b'{"id": 1, "at": "T12:30:15Z"}', OBJECT, f"value.at is not a timestamp {DAY}"),
    (b'{"id": 1, "at": "2026"}', OBJECT, f"value.at is not a timestamp {DAY}"),
    (b'{"id": 1, "at": "2026-01"}', OBJECT, f"value.at is not a timestamp {DAY}"),
    (b'{"id": 1, "at": "noon"}', OBJECT, NOT_CHECKED),
    (b'{"id": 1, "day": "2026"}', OBJECT, "value.day is not a date alone, yyyy-mm-dd"),
    (b'{"id": 1, "day": "2026-01-01T09:30"}', OBJECT, "value.day is not a date alone, yyyy-mm-dd"),
    (b'{"day": "2026", "i": "x"}', OBJECT, "value.i is not a int"),
    (b'{"day": "2026"}', OBJECT, "value lacks the field id, which is NOT NULL"),
    (b'{"id": 1, "day": "2026", "dec": 1.239}', OBJECT, "value.dec is not a decimal(5,2)"),
    (b'{"id": 1, "d": "Infinity"}', OBJECT, NOT_CHECKED),
    (b'{"id": 1, "at": 1357016400000}', OBJECT, NOT_CHECKED),
    (b'{"id": 1, "dec": 12345.678}', OBJECT, NOT_CHECKED),
    (b'{"id": 1, "n": {"x": "two"}}', OBJECT, NOT_CHECKED),
    (b'{"id": 1, "m": {"x": 1}}', OBJECT, NOT_CHECKED),
    (b'{"id": 1, "s": "\\ud800"}', OBJECT, NOT_CHECKED),
    (b"[1]", OBJECT, NOT_CHECKED),
    (b"null", OBJECT, NOT_CHECKED),
    (b"\xef\xbb\xbf{}", OBJECT, NOT_CHECKED),
    (b"text", "string", PARSES),
    (b"\xff", "string", "value is not UTF-8 text"),
    (b"\xff", "binary", PARSES),
    (b"-12", "bigint", PARSES),
    (b"one", "bigint", "value is not a bigint"),
    (b"1.25", "double", PARSES),
    (b"1.5", "int", NOT_CHECKED),
    (b"2013-01-01", "date", NOT_CHECKED),
    (None, OBJECT, PARSES),
]


def judged(value: bytes | None, schema: str) -> str | None:
    return judge(
        {"key": b"k", "value": value}, {"key": read_ddl("binary"), "value": read_ddl(schema)}
    )


@pytest.mark.parametrize(("value", "schema", "expected"), JUDGED)
def test_each_judgement(value: bytes | None, schema: str, expected: str | None) -> None:
    found = judged(value, schema)
    assert (found or "").startswith(expected or "")
    assert (found is NOT_CHECKED, found == PARSES) == (
        expected is NOT_CHECKED,
        expected == PARSES,
    )


def test_a_schema_that_only_spark_reads_is_not_checked() -> None:
    kinds = {"key": read_ddl("binary"), "value": read_ddl("a VARCHAR(3)")}
    sample = judge_all([(None, b"x"), (None, b'{"a": "b"}')], kinds)
    assert (sample.records, sample.parsed, sample.not_checked) == (2, 0, 2)


def test_equal_reasons_are_counted_together_whatever_value_they_show() -> None:
    kinds = {"key": read_ddl("n INT"), "value": read_ddl("string")}
    records: list[tuple[bytes | None, bytes | None]] = [
        (b"a", b""),
        (b"b", b""),
        (b'{"n": "x"}', b""),
    ]
    sample = judge_all([*records, (None, b"ok")], kinds)
    assert (sample.records, sample.parsed, sample.rejected) == (4, 1, 3)
    assert sample.document()["reasons"] == [
        {"reason": "key is not a JSON object of the schema", "records": 2},
        {"reason": "key.n is not a int", "records": 1},
    ]
    assert without_value("value.id is not a bigint: one: two") == "value.id is not a bigint"
    assert without_value("value is not a decimal(5,2)") == "value is not a decimal(5,2)"
    framed = "value begins with the framing of a schema registry (schema id"
    assert without_value(f"{framed} 7): read it with topic(...)") == framed


def test_fields_that_the_schema_lacks_are_counted_and_named() -> None:
    kinds = {"key": None, "value": read_ddl("id INT, n STRUCT<x: INT>, a ARRAY<STRUCT<y: INT>>")}
    records: list[tuple[bytes | None, bytes | None]] = [
        (None, b'{"id": 1}'),
        (None, b'{"id": 1, "di": 2}'),
        (None, b'{"di": 1, "n": {"y": 1}, "a": [{"y": 1}, {"z": 1}]}'),
        (None, b'{"id": "x", "di": 2}'),
    ]
    sample = judge_all(records, kinds)
    assert (sample.parsed, sample.unknown) == (3, 2)
    assert sample.unknown_fields == ("di", "n.y", "a[].z")
    assert sample.reasons == (("value.id is not a int", 1),)
    strict = judge_all(records, kinds, "reject")
    assert (strict.parsed, strict.unknown) == (1, 0)
    words = "value has fields that are not in the schema"
    assert [reason for reason, _ in strict.reasons] == [
        f"{words}: di",
        f"{words}: di, n.y, a[].z",
        "value.id is not a int",
    ]


@pytest.mark.spark
def test_spark_judges_each_of_them_the_same(spark: Any) -> None:
    from pyspark.sql.types import BinaryType, StructField, StructType

    from ottla.pipelines.source.parse import REASON, parse, read_schema

    raw = StructType([StructField("key", BinaryType()), StructField("value", BinaryType())])
    for schema in dict.fromkeys(schema for _, schema, _ in JUDGED):
        values = [value for value, other, _ in JUDGED if other == schema]
        frame = spark.createDataFrame(
            [(str(number).encode(), value) for number, value in enumerate(values)], raw
        )
        kinds = {"key": BinaryType(), "value": read_schema(schema, "schema")}
        rows = parse(frame, kinds, name_fields=True).select("key", REASON).collect()
        reasons = {int(bytes(row["key"])): row[REASON] for row in rows}
        for number, value in enumerate(values):
            found = judged(value, schema)
            if found is not NOT_CHECKED:
                assert found == without_value(reasons[number] or ""), (value, schema)
