"""Parsing by a schema: a row that does not parse gets a reason, and is never a row of nulls."""

from typing import Any

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.source.parse import REASON, parse, read_schema, take_parsed

pytestmark = pytest.mark.spark


def parsed(
    spark: Any,
    value: bytes | None,
    schema: Any,
    key: bytes | None = None,
    key_schema: Any = None,
    *,
    name_fields: bool = False,
) -> Any:
    """Parse one record; gives (value, reason)."""
    schemas = {
        "key": read_schema(key_schema, "key_schema"),
        "value": read_schema(schema, "schema"),
    }
    raw = spark.createDataFrame([(key, value)], "key binary, value binary")
    frame = parse(raw, schemas, name_fields=name_fields)
    row = frame.select(*take_parsed(schemas), REASON).first()
    return row["value"], row[REASON]


OBJECT = "id BIGINT NOT NULL, s STRING, n STRUCT<x: INT>"


def test_good_rows_of_every_kind(spark: Any) -> None:
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


@pytest.mark.parametrize(
    "value",
    [
        b' {"id": 1, "s": "a"} ',
        b'{"id": 1, "s": "a}", "n": {"x": null}}',
        b'{"id": 1, "s": "a", "more": [{}, {"y": "]"}]}\n',
        b'{"id": 1, "s": "]}{["}',
    ],
)
def test_braces_and_space_are_no_trailing_text(spark: Any, value: bytes) -> None:
    assert parsed(spark, value, OBJECT)[1] is None


def test_a_tombstone_is_no_fault(spark: Any) -> None:
    for schema in (OBJECT, None, "binary", "bigint"):
        assert parsed(spark, None, schema) == (None, None)


NO_OBJECT = "value is not a JSON object of the schema"


@pytest.mark.parametrize(
    ("value", "schema", "words"),
    [
        (b"no json", OBJECT, NO_OBJECT),
        (b'{"id": 1', OBJECT, NO_OBJECT),
        (b'{"id": "one"}', OBJECT, NO_OBJECT),
        (b'{"id": 1, "n": {"x": "two"}}', OBJECT, NO_OBJECT),
        (b'{"id": 1, "s": "\xff"}', OBJECT, NO_OBJECT),
        (b"[1]", OBJECT, NO_OBJECT),
        (b"null", OBJECT, NO_OBJECT),
        (b"", OBJECT, NO_OBJECT),
        (b'{"s": "a"}', OBJECT, "value lacks the field id, which is NOT NULL"),
        (b"\xff", None, "value is not UTF-8 text"),
        (b"one", "bigint", "value is not a bigint"),
    ],
)
def test_what_does_not_parse_says_why(spark: Any, value: bytes, schema: str, words: str) -> None:
    assert parsed(spark, value, schema)[1] == words


@pytest.mark.parametrize(
    "value",
    [
        b'{"id":20}{"id":21}',
        b'{"id":24} rubbish',
        b'{"id":24} }',
        b'{"id":24}, {"id":25}',
        b'{"id":24},"x":{"id":25}',
        b'{"id":24}],[{"id":25}',
        b'{"id":24}],"x":[{"id":25}',
        b'{"id":24},{"_ottla_end":true}]',
        b'{"id":24}\x00',
    ],
)
def test_text_after_the_object_is_rejected(spark: Any, value: bytes) -> None:
    assert parsed(spark, value, OBJECT)[1] == "value has more text after its JSON object"


@pytest.mark.parametrize(
    ("value", "schema", "words"),
    [
        (b'{"id": "one"}', OBJECT, "value.id is not a bigint: one"),
        (b'{"id": 1.5, "s": "a"}', OBJECT, "value.id is not a bigint: 1.5"),
        (b'{"id": 1, "n": {"x": "two"}}', OBJECT, "value.n.x is not a int: two"),
        (b'{"id": 1, "n": 5}', OBJECT, "value.n is not a JSON object: 5"),
        (
            b'{"id": 1, "a": [1, "x"]}',
            "id BIGINT, a ARRAY<INT>",
            'value.a is not a array<int>: [1,"x"]',
        ),
        (b'{"t": "%s"}' % (b"x" * 100), "t DATE", "value.t is not a date: " + "x" * 40),
        (b"no json", OBJECT, NO_OBJECT),
        (b'{"id": 1, "s": "\xff"}', OBJECT, NO_OBJECT),
        (b"[1]", OBJECT, NO_OBJECT),
    ],
)
def test_the_reason_names_the_value_that_does_not_fit(
    spark: Any, value: bytes, schema: str, words: str
) -> None:
    assert parsed(spark, value, schema, name_fields=True)[1] == words


def test_a_key_that_does_not_parse_counts_if_it_has_a_schema(spark: Any) -> None:
    java_long = (200).to_bytes(8, "big")
    assert parsed(spark, b"good", None, key=java_long)[1] is None
    assert parsed(spark, b"good", None, java_long, "string")[1] == "key is not UTF-8 text"


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("id BIGNT NOT", "write fields such as"),
        (17, "not int"),
        ("array<int>", "from_json"),
        ("map<string,int>", "from_json"),
    ],
)
def test_what_is_no_schema_is_refused_in_one_line(spark: Any, schema: Any, words: str) -> None:
    with pytest.raises(PipelineError, match=words) as caught:
        read_schema(schema, "schema")
    assert "\n" not in str(caught.value)
