"""NOT NULL at every depth, years that Python can hold, numbers that do not overflow."""

from typing import Any

import pytest

from ottla.pipelines.source.parse import REASON, parse, read_schema, take_parsed

pytestmark = pytest.mark.spark


def parsed(spark: Any, value: str, schema: str) -> Any:
    """Parse one value; gives the row, which must be fit for collect(), or the reason."""
    schemas = {"value": read_schema(schema, "schema")}
    raw = spark.createDataFrame([(value.encode(),)], "value binary")
    frame = parse(raw, schemas)
    reason = frame.select(REASON).first()[REASON]
    if reason is not None:
        return reason
    (value,) = frame.select(*take_parsed(schemas)).first()
    return value.asDict(recursive=True) if hasattr(value, "asDict") else value


NESTED = (
    "n STRUCT<x: INT NOT NULL>, a ARRAY<STRUCT<y: INT NOT NULL>>, "
    "m MAP<STRING, STRUCT<z: INT NOT NULL>>"
)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('{"n": {}}', "value lacks the field n.x, which is NOT NULL"),
        ('{"n": {"x": null}}', "value lacks the field n.x, which is NOT NULL"),
        ('{"a": [{"y": 1}, {}]}', "value lacks the field a[].y, which is NOT NULL"),
        ('{"m": {"k": {}}}', "value lacks the field m{}.z, which is NOT NULL"),
    ],
)
def test_not_null_holds_at_every_depth(spark: Any, value: str, words: str) -> None:
    assert parsed(spark, value, NESTED) == words


def test_a_struct_that_is_null_lacks_nothing(spark: Any) -> None:
    assert parsed(spark, '{"n": null, "a": [null, {"y": 1}]}', NESTED) == {
        "n": None,
        "a": [None, {"y": 1}],
        "m": None,
    }


YEARS = "is outside of the years 1 to 9999"
SECONDS = f"{YEARS}: a number is seconds since 1970, not milliseconds"


@pytest.mark.parametrize(
    ("value", "schema", "words"),
    [
        ('{"t": 1763800000000}', "t TIMESTAMP", f"value.t {SECONDS}"),
        ('{"a": [1, 1763800000000]}', "a ARRAY<TIMESTAMP>", f"value.a[] {SECONDS}"),
        ('{"n": {"t": -99999999999}}', "n STRUCT<t: TIMESTAMP>", f"value.n.t {SECONDS}"),
        ('{"t": "55840-01-01"}', "t DATE", f"value.t {YEARS}"),
        ('{"t": "+55840-01-01T00:00:00"}', "t TIMESTAMP_NTZ", f"value.t {YEARS}"),
        ("+55840-01-01", "date", f"value {YEARS}"),
    ],
)
def test_years_that_python_cannot_hold_are_rejected(
    spark: Any, value: str, schema: str, words: str
) -> None:
    assert parsed(spark, value, schema) == words


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ('{"t": 1763800000, "b": -56, "d": -1e300}', "t TIMESTAMP, b TINYINT, d DOUBLE"),
        ('{"t": "2026-01-01T00:00:00.123456Z", "i": 12345678901234567}', "t TIMESTAMP, i BIGINT"),
        ('{"t": "9999-12-31T23:59:59", "d": "0001-01-01"}', "t TIMESTAMP_NTZ, d DATE"),
        ('{"d": "Infinity", "f": "-INF"}', "d DOUBLE, f FLOAT"),
        ('{"d": -Infinity}', "d DOUBLE"),
    ],
)
def test_numbers_and_times_in_their_range_pass(spark: Any, value: str, schema: str) -> None:
    found = parsed(spark, value, schema)
    assert isinstance(found, dict), found
    assert None not in found.values()


def test_microseconds_never_overflow_into_a_year_that_passes(spark: Any) -> None:
    """2**64 microseconds are 213 days of microseconds taken as seconds: some land in our years."""
    micros = [round((turn * 2**64 + 63 * 10**15 + 7) / 10**6) for turn in range(90, 100)]
    assert len(str(micros[0])) == 16
    for number in micros:
        reason = parsed(spark, f'{{"t": {number}}}', "t TIMESTAMP")
        assert reason == (
            "value.t does not fit a timestamp: a number is seconds since 1970, not microseconds"
        )


@pytest.mark.parametrize(
    ("value", "schema", "words"),
    [
        ('{"b": 200}', "b TINYINT", "value.b does not fit a tinyint"),
        ('{"n": {"b": 129}}', "n STRUCT<b: TINYINT>", "value.n.b does not fit a tinyint"),
        ('{"d": 1e999}', "d DOUBLE", "value.d does not fit a floating-point number"),
        ('{"f": -1e300}', "f FLOAT", "value.f does not fit a floating-point number"),
    ],
)
def test_numbers_that_overflow_are_rejected(
    spark: Any, value: str, schema: str, words: str
) -> None:
    assert parsed(spark, value, schema) == words
