"""Objects of plain values are proved to need no closer look by counting: with no wrong proof."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.pipelines.source.parse import REASON, UNKNOWN, parse, read_schema, take_parsed
from ottla.pipelines.source.quick import is_quick

pytestmark = pytest.mark.spark

SCHEMA = "id BIGINT, s STRING, d DOUBLE"
NO_OBJECT = "value is not a JSON object of the schema"
MORE = "value has more text after its JSON object"
HALF_PAIR = r"value has half of a surrogate pair, such as \ud83d alone, which is no character"
TOO_LARGE = "value.d does not fit a floating-point number"
# The value, whether counting proves it (but for text behind the object), the reason, and the names
# of unknown fields.
VALUES: list[tuple[bytes, bool, str | None, str | None]] = [
    (b'{"id":1,"s":"x","d":1.5}', True, None, None),
    (b' { "d" : 1e3 , "s" : "x" , "id" : 1 } '.strip(), True, None, None),
    (b'{"id":1}', True, None, None),
    (b'{"s":"","d":-0.5}', True, None, None),
    ('{"id":1,"s":"Zoë 🎈","d":1}'.encode(), True, None, None),
    (b'{"id":1,"s":"a\\"b\\u002c"}', True, None, None),
    (b"{'id':1,'s':'x'}", True, None, None),
    (b'{"id":1,"s":"what?"}', False, None, None),
    (b'{"id":1,"s":"x\\ud83d\\uDE00"}', True, None, None),
    (b'{"id":1,"s":"x\\ud83d"}', False, HALF_PAIR, None),
    (b'{"id":1,"s":{"t":"x\\udE00"}}', True, HALF_PAIR, None),
    (b'{"id":1,"s":[7]}', True, None, None),
    (b'{"id":1,"s":"a, b","d":1.5}', False, None, None),
    (b'{"id":1,"s":null,"d":1.5}', False, None, None),
    (b'{"id":1,"id":2}', False, None, None),
    (b'{"id":1,"s":"}"}', True, None, None),
    ('{"id":1,"s":"\N{REPLACEMENT CHARACTER}"}'.encode(), False, None, None),
    (b"{}", False, None, None),
    (b'{"id":1,"x":2}', False, None, "x"),
    (b'{"id":1,"id":2,"x":2}', False, None, "x"),
    (b'{"id":1,"s":null,"x":2}', False, None, "x"),
    (b'{"x":2}', False, None, "x"),
    (b'{"id":1,"\xff":2}', False, NO_OBJECT, None),
    (b'{"id":1,"s":"\xff"}', False, NO_OBJECT, None),
    (b'{"id":1,"s":"\xed\xa0\x80"}', False, NO_OBJECT, None),
    (b'{"id":1,"s":"x"} {"x":2}', True, MORE, None),
    (b'{"id":1,"s":"x"}]', True, MORE, None),
    (b'{"id":1,"d":1e999}', False, TOO_LARGE, None),
    (b'{"id":1,"s":"x","d":-1e999}', False, TOO_LARGE, None),
]


def parsed(spark: Any) -> list[Any]:
    """Parse the values as one frame; gives the rows (n, value, reason, names, quick)."""
    from pyspark.sql import functions as F  # noqa: N812

    schema = read_schema(SCHEMA, "schema")
    raw = spark.createDataFrame(
        [(number, value) for number, (value, *_) in enumerate(VALUES)], "n int, value binary"
    )
    frame = parse(raw, {"value": schema})
    text = F.col("value").cast("string")
    quick = is_quick(F.from_json(text, schema), text, schema)
    assert quick is not None
    found = frame.select("n", *take_parsed({"value": schema}), REASON, UNKNOWN, quick)
    return sorted(found.collect(), key=lambda row: row["n"])


def test_counting_proves_no_text_that_needs_a_closer_look(spark: Any) -> None:
    for row, (value, is_proved, reason, names) in zip(parsed(spark), VALUES, strict=True):
        assert row[4] == is_proved, value
        assert row[REASON] == reason, value
        if reason is None:
            assert row[UNKNOWN] == names, value


@pytest.mark.parametrize(
    "schema",
    ["at TIMESTAMP", "d DATE", "x DECIMAL(5, 2)", "t TINYINT", "n STRUCT<x: INT>", "a ARRAY<INT>"],
)
def test_values_that_the_parser_may_change_are_not_counted(spark: Any, schema: str) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    fields = read_schema(f"id INT, {schema}", "schema")
    assert is_quick(F.col("parsed"), F.col("text"), fields) is None
