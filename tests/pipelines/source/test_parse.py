"""Parsing by a schema: a row that does not parse gets a reason, and never a silent null."""

from typing import Any

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.source.parse import REASON, parse, read_schema, take_parsed

pytestmark = pytest.mark.spark


def parsed(spark: Any, value: bytes | None, schema: Any, key: bytes | None = None) -> Any:
    """Parse one record; gives (value, reason)."""
    schemas = {"key": read_schema(None, "key_schema"), "value": read_schema(schema, "schema")}
    raw = spark.createDataFrame([(key, value)], "key binary, value binary")
    frame = parse(raw, schemas)
    row = frame.select(*take_parsed(frame, schemas), REASON).first()
    return row["value"], row[REASON]


OBJECT = "id BIGINT NOT NULL, s STRING, n STRUCT<x: INT>"


def test_good_rows_of_every_kind(spark) -> None:
    value, reason = parsed(
        spark, b'{"id": 1, "s": "K\xc3\xa4fer", "n": {"x": 2}, "more": 3}', OBJECT
    )
    assert (value.asDict(recursive=True), reason) == (
        {"id": 1, "s": "Käfer", "n": {"x": 2}},
        None,
    )
    assert parsed(spark, b"K\xc3\xa4fer", None) == ("Käfer", None)
    assert parsed(spark, b"\xff\x00", "binary") == (b"\xff\x00", None)
    assert parsed(spark, b"17", "bigint") == (17, None)
    assert parsed(spark, b"1.5", "double") == (1.5, None)


def test_a_tombstone_is_no_fault(spark) -> None:
    for schema in (OBJECT, None, "binary", "bigint"):
        assert parsed(spark, None, schema) == (None, None)


@pytest.mark.parametrize(
    ("value", "schema", "words"),
    [
        (b"no json", OBJECT, "value is not a JSON object of the schema"),
        (b'{"id": 1', OBJECT, "value is not a JSON object of the schema"),
        (b'{"id": "one"}', OBJECT, "value is not a JSON object of the schema"),
        (b'{"id": 1, "n": {"x": "two"}}', OBJECT, "value is not a JSON object of the schema"),
        (b'{"id": 1, "s": "\xff"}', OBJECT, "value is not a JSON object of the schema"),
        (b"[1]", OBJECT, "value is not a JSON object of the schema"),
        (b"null", OBJECT, "value is not a JSON object of the schema"),
        (b"", OBJECT, "value is not a JSON object of the schema"),
        (b'{"s": "a"}', OBJECT, "value lacks the field id, which is NOT NULL"),
        (b"\xff", None, "value is not UTF-8 text"),
        (b"one", "bigint", "value is not a bigint"),
    ],
)
def test_what_does_not_parse_says_why(spark, value: bytes, schema: str, words: str) -> None:
    assert parsed(spark, value, schema)[1] == words


def test_a_key_that_does_not_parse_counts_too(spark) -> None:
    assert parsed(spark, b"good", None, key=b"\xff")[1] == "key is not UTF-8 text"


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("id BIGNT NOT", "write fields such as"),
        (17, "not int"),
        ("array<int>", "from_json"),
        ("map<string,int>", "from_json"),
    ],
)
def test_what_is_no_schema_is_refused_in_one_line(spark, schema: Any, words: str) -> None:
    with pytest.raises(PipelineError, match=words) as caught:
        read_schema(schema, "schema")
    assert "\n" not in str(caught.value)
