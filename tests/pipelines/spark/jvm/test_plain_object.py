"""What the class reads is what Spark reads; it leaves to Spark what needs a closer look."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import pytest

from ottla.pipelines.source.parse import REASON, UNKNOWN, parse, read_schema, take_parsed
from ottla.pipelines.spark.jvm.plain_object import MAX_FIELDS, SETTING, plain_object

pytestmark = pytest.mark.spark

SCHEMA = "id BIGINT, s STRING, d DOUBLE"
NO_OBJECT = "value is not a JSON object of the schema"
MORE = "value has more text after its JSON object"
HALF_PAIR = r"value has half of a surrogate pair, such as \ud83d alone, which is no character"
TOO_LARGE = "value.d does not fit a floating-point number"
# The value, whether the class reads it, the reason, and the names of unknown fields.
VALUES: list[tuple[bytes, bool, str | None, str | None]] = [
    (b'{"id":1,"s":"x","d":1.5}', True, None, None),
    (b' { "d" : 1e3 , "s" : "x" ,\r\n\t"id" : 1 }\n', True, None, None),
    (b'{"id":1}', True, None, None),
    (b"{ }", True, None, None),
    (b'{"s":"","d":-0.5}', True, None, None),
    ('{"id":1,"s":"Zoë 🎈","d":1}'.encode(), True, None, None),
    (b'{"id":1,"s":"a\\"b\\u002c\\n\\/\\u00eb\\u20AC"}', True, None, None),
    (b"{'id':1,'s':'x'}", False, None, None),
    (b'{"id":1,"s":"what?, {[}]"}', True, None, None),
    (b'{"id":1,"s":"x\\ud83d\\uDE00"}', True, None, None),
    (b'{"id":1,"s":"x\\ud83d"}', False, HALF_PAIR, None),
    (b'{"id":1,"s":"x\\ud83d\\u0041"}', False, HALF_PAIR, None),
    (b'{"id":1,"s":{"t":"x\\udE00"}}', False, HALF_PAIR, None),
    (b'{"id":1,"s":[7]}', False, None, None),
    (b'{"id":1,"s":null,"d":1.5}', True, None, None),
    (b'{"id":1,"id":2}', False, None, None),
    ('{"id":1,"s":"\N{REPLACEMENT CHARACTER}"}'.encode(), True, None, None),
    (b'{"id":1,"x":2}', False, None, "x"),
    (b'{"id":1,"id":2,"x":2}', False, None, "x"),
    (b'{"x":2}', False, None, "x"),
    (b'{"id":1,"\xff":2}', False, NO_OBJECT, None),
    (b'{"id":1,"s":"\xff"}', False, NO_OBJECT, None),
    (b'{"id":1,"s":"\xc0\x80"}', False, NO_OBJECT, None),
    (b'{"id":1,"s":"\xe0\x9f\x80"}', False, NO_OBJECT, None),
    (b'{"id":1,"s":"\xed\xa0\x80"}', False, NO_OBJECT, None),
    (b'{"id":1,"s":"\xf4\x90\x80\x80"}', False, NO_OBJECT, None),
    (b'{"id":1,"s":"\xe2\x82"}', False, NO_OBJECT, None),
    (b'{"id":1,"s":"a\x01"}', False, NO_OBJECT, None),
    (b'{"id":1,"s":"x"} {"x":2}', False, MORE, None),
    (b'{"id":1,"s":"x"}]', False, MORE, None),
    (b'{"id":1,"s":"x"}\x00', False, MORE, None),
    (b'{"id":01}', False, NO_OBJECT, None),
    (b'{"id":1', False, NO_OBJECT, None),
    (b'{"id":1,}', False, NO_OBJECT, None),
    (b'{"id":', False, NO_OBJECT, None),
    (b"", False, NO_OBJECT, None),
    (b'{"id":9223372036854775807}', False, None, None),
    (b'{"id":1,"d":1e999}', False, TOO_LARGE, None),
    (b'{"id":1,"s":"x","d":-1e999}', False, TOO_LARGE, None),
]


def read(spark: Any, schema: str, values: list[bytes]) -> list[Any]:
    """Return what the class reads, null for what it leaves, and what Spark's parser reads."""
    from pyspark.sql import functions as F  # noqa: N812

    kind = read_schema(schema, "schema")
    data = [(number, value) for number, value in enumerate(values)]
    frame = spark.createDataFrame(data, "n int, value binary")
    column = plain_object(spark, frame.value, kind)
    assert column is not None
    by_spark = F.from_json(F.col("value").cast("string"), kind)
    found = frame.select("n", column.alias("at_once"), by_spark.alias("by_spark"))
    return sorted(found.collect(), key=lambda row: row["n"])


def test_it_leaves_what_needs_a_closer_look(spark: Any) -> None:
    values = [value for value, *_ in VALUES]
    schemas = {"value": read_schema(SCHEMA, "schema")}
    data = [(number, value) for number, value in enumerate(values)]
    frame = parse(spark.createDataFrame(data, "n int, value binary"), schemas)
    taken = frame.select("n", *take_parsed(schemas), REASON, UNKNOWN).collect()
    at_once = read(spark, SCHEMA, values)
    for row, one, (value, is_read, reason, names) in zip(
        sorted(taken, key=lambda row: row["n"]), at_once, VALUES, strict=True
    ):
        assert (one["at_once"] is not None) == is_read, value
        assert one["at_once"] in (None, one["by_spark"]), value
        assert row[REASON] == reason, value
        if reason is None:
            assert row["value"] == one["by_spark"], value
            assert row[UNKNOWN] == names, value


def test_a_null_is_no_object(spark: Any) -> None:
    schemas = {"value": read_schema(SCHEMA, "schema")}
    frame = parse(spark.createDataFrame([(None,)], "value binary"), schemas)
    assert frame.select(*take_parsed(schemas), REASON).collect() == [(None, None)]


@pytest.mark.parametrize(
    ("kind", "some", "others"),
    [
        ("TINYINT", ["0", "-128", "127"], ["128", "-0", "1.0", '"1"', "+1", "1e1", "true"]),
        ("SMALLINT", ["-32768", "32767"], ["32768"]),
        ("INT", ["-2147483648", "2147483647"], ["2147483648", "- 1", "--1", "0x1"]),
        ("BIGINT", ["-999999999999999999"], ["9223372036854775808", "1" * 30]),
        ("FLOAT", ["1", "-0.0", "0.1", "16777217", "3.4028235e38"], ["3.5e38", "-0", "NaN"]),
        (
            "DOUBLE",
            ["0", "-0.0", "0.1", "9007199254740993", "1E-400", "123456789012345.6", "1.5E+3"],
            ["1e309", "-0", ".5", "5.", "1e", "1e+", "00.5", "Infinity", '"1.5"', "1" * 70],
        ),
        (
            "DECIMAL(5,2)",
            ["0", "-1.5", "123.45", '"123.45"', '"-0.1"', "-0"],
            ["1000", "1.234", "1.500", "1e2", '"1,5"', '" 1"', '"1.5', "01", '""'],
        ),
        ("BOOLEAN", ["true", "false"], ["True", "truefalse", '"true"', "1", "t"]),
        (
            "DATE",
            ['"2026-01-31"', '"2024-02-29"', '"1900-01-01"'],
            ['"2026-02-29"', '"2026-1-1"', '"1899-12-31"', '"2026-01-01 "', '"2026-00-01"', '"20"'],
        ),
        (
            "TIMESTAMP",
            [
                '"2026-01-31T12:30:59Z"',
                '"2026-01-31T00:00:00.5+05:30"',
                '"2026-03-29T02:30:00.123456-17:59"',
            ],
            [
                *('"2026-01-31T12:30:59"', '"2026-01-31 12:30:59Z"', '"2026-01-31T24:00:00Z"'),
                *('"2026-01-31T12:30:60Z"', '"2026-01-31T12:30:59.1234567Z"', "1763800000"),
                *('"2026-01-31T12:30:59+18:30"', '"2026-01-31T12:30:59.Z"', '"2026-01-31T12:30Z"'),
            ],
        ),
        ("STRUCT<x: INT>", ['{"x":1}', "{}", '{"x":null}'], ['{"y":1}', "[]", '"x"']),
        ("ARRAY<INT>", ["[]", "[1, null ,2]"], ["[1,]", "[,1]", "[1", "1", '["1"]']),
        ("MAP<STRING, INT>", ["{}", '{"a" : 1, "\\u0062":null}'], ['{"a":1,"a":2}', '{"a":"1"}']),
        (
            "ARRAY<MAP<STRING, STRUCT<x: DATE>>>",
            ['[{"k":{"x":"2026-01-31"}}]'],
            ['[{"k":{"y":1}}]'],
        ),
    ],
)
def test_the_values_of_a_type(spark: Any, kind: str, some: list[str], others: list[str]) -> None:
    values = [f'{{"x":{value}}}'.encode() for value in [*some, "null", *others]]
    found = read(spark, f"x {kind}", values)
    for value, row in zip(values, found, strict=True):
        assert (row["at_once"] is not None) == (row["n"] <= len(some)), value
        # As texts, in which -0.0 is not 0.0.
        assert str(row["at_once"]) in ("None", str(row["by_spark"])), value


def test_what_is_not_null_must_be_there(spark: Any) -> None:
    schema = "x INT NOT NULL, n STRUCT<y: INT NOT NULL>"
    values = [b'{"x":1,"n":{"y":2}}', b'{"x":1}', b'{"x":null}', b"{}", b'{"x":1,"n":{}}']
    found = read(spark, schema, values)
    assert [row["at_once"] is not None for row in found] == [True, True, False, False, False]


def test_floating_point_numbers_are_the_nearest_ones(spark: Any) -> None:
    chance = random.Random(7)
    numbers = [struct.unpack("<d", chance.randbytes(8))[0] for _ in range(2_000)]
    numbers += [chance.randrange(10**15) / 10 ** chance.randrange(16) for _ in range(2_000)]
    texts = [repr(one) for one in numbers if one - one == 0]
    texts += [f"{chance.randrange(10**10)}.{chance.randrange(10**12):012}" for _ in range(1_000)]
    values = [f'{{"d":{text},"f":{text}}}'.encode() for text in texts]
    rows = read(spark, "d DOUBLE", [f'{{"d":{text}}}'.encode() for text in texts])
    for text, row in zip(texts, rows, strict=True):
        assert row["at_once"]["d"] == float(text), text
    for value, row in zip(values, read(spark, "d DOUBLE, f FLOAT", values), strict=True):
        assert row["at_once"] in (None, row["by_spark"]), value


def test_texts_are_those_that_json_has(spark: Any) -> None:
    chance = random.Random(7)
    alphabet = [
        *'ab"\\/\b\f\n\r\t\x00\x1f\x7f{}[],:',
        "é",
        "€",
        "\ud7ff",
        "\ue000",
        "🎈",
        "\U0010ffff",
    ]
    texts = ["".join(chance.choices(alphabet, k=chance.randrange(12))) for _ in range(1_000)]
    for ascii_only in (True, False):
        values = [json.dumps({"s": one}, ensure_ascii=ascii_only).encode() for one in texts]
        for text, row in zip(texts, read(spark, "s STRING", values), strict=True):
            assert row["at_once"]["s"] == text


@pytest.mark.parametrize(
    "schema",
    [
        "t TIMESTAMP_NTZ",
        "v VARCHAR(3)",
        "b BINARY",
        "m MAP<INT, INT>",
        'n STRUCT<`a"b`: INT>',
        ", ".join(f"f{number} INT" for number in range(MAX_FIELDS)),
    ],
)
def test_a_schema_that_it_does_not_read(spark: Any, schema: str) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    assert plain_object(spark, F.col("value"), read_schema(schema, "schema")) is None


def test_a_field_with_a_default_is_not_null_where_it_is_missing(spark: Any) -> None:
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StructField, StructType

    for metadata, is_read in (({"comment": "of x"}, True), ({"EXISTS_DEFAULT": "5"}, False)):
        schema = StructType([StructField("x", read_schema("INT", "schema"), True, metadata)])
        assert (plain_object(spark, F.col("value"), schema) is not None) == is_read


@pytest.mark.parametrize(
    ("name", "value"), [(SETTING, "false"), ("spark.sql.legacy.timeParserPolicy", "LEGACY")]
)
def test_a_session_that_leaves_all_to_spark(spark: Any, name: str, value: str) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    kind = read_schema("t TIMESTAMP", "schema")
    assert plain_object(spark, F.col("value"), kind) is not None
    spark.conf.set(name, value)
    try:
        assert plain_object(spark, F.col("value"), kind) is None
    finally:
        spark.conf.unset(name)
