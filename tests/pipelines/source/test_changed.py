"""Values that Spark's parsers would change are rejected, with what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.pipelines.source.parse import REASON, parse, read_schema, take_parsed

pytestmark = pytest.mark.spark

SCHEMA = (
    "id BIGINT, dec DECIMAL(15,2), big DECIMAL(38,18), at TIMESTAMP, local TIMESTAMP_NTZ, "
    "day DATE, d DOUBLE, f FLOAT, t TINYINT, n STRUCT<dec: DECIMAL(5,2)>, a ARRAY<DECIMAL(5,2)>, "
    "da ARRAY<DOUBLE>, ta ARRAY<TIMESTAMP>, m MAP<STRING, DATE>, s ARRAY<STRUCT<day: DATE>>, "
    "text STRING, keys MAP<STRING, INT>"
)
HALF_PAIR = r"value has half of a surrogate pair, such as \ud83d alone, which is no character"
DAY = "that begins with a date, yyyy-mm-dd"
CHANGED = [
    ('{"dec": "1,5"}', "value.dec is not a decimal(15,2) without a comma: 1,5"),
    ('{"dec": 1.239}', "value.dec is not a decimal(15,2) without rounding: 1.239"),
    ('{"dec": "1.239"}', "value.dec is not a decimal(15,2) without rounding: 1.239"),
    ('{"dec": 1e-3}', "value.dec is not a decimal(15,2) without rounding: 0.001"),
    ('{"dec": 1234567890123.4499}', "value.dec is not a decimal(15,2) without rounding: "),
    ('{"big": 1.0000000000000000001}', "value.big is not a decimal(38,18) without rounding: "),
    ('{"n": {"dec": 1.239}}', "value.n.dec is not a decimal(5,2) without rounding: 1.239"),
    ('{"a": [1, 1.239]}', "value.a[] is not a decimal(5,2) without rounding"),
    ('{"at": "12:30"}', f"value.at is not a timestamp {DAY}: 12:30"),
    ('{"at": "T12:30:00Z"}', f"value.at is not a timestamp {DAY}: T12:30:00Z"),
    ('{"at": "2026"}', f"value.at is not a timestamp {DAY}: 2026"),
    ('{"at": "2026-01"}', f"value.at is not a timestamp {DAY}: 2026-01"),
    ("{'at': '12:30'}", f"value.at is not a timestamp {DAY}: 12:30"),
    ('{"\\u0061t": "12:30"}', f"value.at is not a timestamp {DAY}: 12:30"),
    ('{"ta": ["2026-01-01T00:00:00Z", "12:30"]}', f"value.ta[] is not a timestamp {DAY}"),
    ('{"local": "2026"}', f"value.local is not a timestamp_ntz {DAY}: 2026"),
    ('{"day": "2026"}', "value.day is not a date alone, yyyy-mm-dd: 2026"),
    ('{"day": "17"}', "value.day is not a date alone, yyyy-mm-dd: 17"),
    ('{"day": "2026-01-01T23:30"}', "value.day is not a date alone, yyyy-mm-dd: 2026-01-01T23:30"),
    ('{"m": {"k": "2026"}}', "value.m{} is not a date alone, yyyy-mm-dd"),
    ('{"s": [{"day": "2026"}]}', "value.s[].day is not a date alone, yyyy-mm-dd"),
    ('{"d": 1e999}', "value.d does not fit a floating-point number"),
    ('{"da": [1, -1e999]}', "value.da[] does not fit a floating-point number"),
    ('{"f": 1e39}', "value.f does not fit a floating-point number"),
    ('{"t": 200}', "value.t does not fit a tinyint"),
    ('{"text": "cut \\ud83d"}', HALF_PAIR),
    ('{"text": "\\uDE00\\ud83D"}', HALF_PAIR),
    ('{"text": "\\\\\\ud83d?", "id": 1}', HALF_PAIR),
    ('{"keys": {"\\ud83d": 1}}', HALF_PAIR),
]
KEPT = [
    '{"dec": 1.5, "big": 0.000000000000000001, "n": {"dec": "2.50"}, "a": [1, 2.25]}',
    '{"dec": 1.2300, "big": 1e-7, "a": [1e2, 0.05]}',
    '{"dec": 1234567890123.45, "big": 12345678901234567890.123456789012345678}',
    '{"dec": "1234567890123.45", "d": 1e300, "at": null}',
    '{"at": "2026-01-02T12:30:00.123456789+01:00", "local": "2026-01-02 12:30", "day": "2026-1-2"}',
    '{"at": "2026-01-02", "day": " 2026-01-02 ", "ta": [1763800000, null]}',
    '{"at": "2026-01-02 12:30:00 Europe/Berlin", "m": {"k": null}, "s": [null, {}]}',
    '{"at": 2026, "d": "Infinity", "f": "-INF", "da": [1e-300]}',
    '{"d": NaN, "f": -Infinity, "t": -56}',
    '{"at": -7}',
    "{'dec': 1.5, 'at': '2026-01-02T12:30:00Z'}",
    '{"text": "\\ud83d\\uDE00, \\\\ud83d, \\ud55c, \\u00e4 \\\\\\ud83d\\ude00?"}',
    "{'text': '\\ud83d\\ude00', 'id': 1}",
]


def reasons(spark: Any, values: list[str], schema: str, *, name_fields: bool) -> list[str | None]:
    """Parse the values as one frame; gives the reason of each."""
    schemas = {"value": read_schema(schema, "schema")}
    rows = [(number, value.encode()) for number, value in enumerate(values)]
    frame = parse(
        spark.createDataFrame(rows, "n int, value binary"), schemas, name_fields=name_fields
    )
    found = frame.select("n", REASON, *take_parsed(schemas)).collect()
    return [row[REASON] for row in sorted(found, key=lambda row: row["n"])]


def test_values_that_from_json_changes_are_rejected(spark: Any) -> None:
    found = reasons(spark, [value for value, _ in CHANGED], SCHEMA, name_fields=True)
    for (value, words), reason in zip(CHANGED, found, strict=True):
        assert (reason or "").startswith(words), value


def test_the_pass_that_counts_rejects_the_same_and_nothing_else(spark: Any) -> None:
    values = [value for value, _ in CHANGED] + KEPT
    found = reasons(spark, values, SCHEMA, name_fields=False)
    assert [value for value, reason in zip(values, found, strict=True) if reason] == values[
        : len(CHANGED)
    ]


@pytest.mark.parametrize(
    ("schema", "changed", "kept"),
    [
        ("decimal(5,2)", ["1.239", "1e-3"], ["1.5", " 1.50 ", "1e2", "-1.2300"]),
        ("timestamp", ["12:30", "2026"], ["2026-01-02T12:30:00Z", "2026-01-02"]),
        ("timestamp_ntz", ["2026-01-02T12:30:00+05:00", "2026"], ["2026-01-02T12:30:00"]),
        ("date", ["2026", "2026-01-02 noon"], ["2026-01-02"]),
        ("double", ["1e999", "17d"], ["1e300", "-Infinity", "inf", "NaN"]),
    ],
)
def test_text_that_a_cast_changes_is_rejected(
    spark: Any, schema: str, changed: list[str], kept: list[str]
) -> None:
    found = reasons(spark, changed + kept, schema, name_fields=False)
    assert [reason is not None for reason in found] == [True] * len(changed) + [False] * len(kept)


def test_half_a_character_is_looked_for_where_the_schema_has_texts(spark: Any) -> None:
    (found,) = reasons(spark, [r'{"id": 1, "name": "\ud83d"}'], "id BIGINT", name_fields=True)
    assert found is None
    wanted = "id BIGINT, at STRUCT<name: STRING>"
    (found,) = reasons(spark, [r'{"id": 1, "name": "\ud83d"}'], wanted, name_fields=True)
    assert found == HALF_PAIR, "also in a field that the schema lacks"
