"""The first value that does not fit is found at any depth; see test_parse for each kind."""

from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from ottla.pipelines.source.mismatches import name_mismatch
from ottla.pipelines.source.parse import read_schema

pytestmark = pytest.mark.spark


def test_the_first_mismatch_is_named_and_none_where_all_fit(spark: Any) -> None:
    schema = read_schema("a INT, n STRUCT<b: INT, c: DATE>, z INT", "schema")
    texts = [
        '{"a": 1, "n": {"b": 2, "c": "2026-01-01"}, "z": 3}',
        '{"a": 1, "n": {"b": 2, "c": "soon"}, "z": 3}',
        '{"a": 1, "n": [], "z": "x"}',
    ]
    frame = spark.createDataFrame([(text,) for text in texts], "text string")
    text = F.col("text")
    words = name_mismatch(F.from_json(text, schema), text, schema, "value")

    assert [row[0] for row in frame.select(words).collect()] == [
        None,
        "value.n.c is not a date: soon",
        "value.n is not a JSON object: []",
    ]
