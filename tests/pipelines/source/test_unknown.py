"""Fields that the schema lacks: left out and counted, kept as JSON, or a reason to reject."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ottla.pipelines.source.parse import REASON, UNKNOWN, parse, read_schema, take_parsed
from ottla.pipelines.source.unknown import COLUMN

pytestmark = pytest.mark.spark

SCHEMA = (
    "id BIGINT, s STRING, n STRUCT<x: INT, q: STRUCT<z: INT>>, a ARRAY<STRUCT<y: INT>>, "
    "m MAP<STRING, STRUCT<y: INT>>, p MAP<STRING, INT>"
)
# The value, the names of its unknown fields, and what is kept of them.
VALUES: list[tuple[str, str | None, dict[str, Any] | None]] = [
    ('{"id": 1, "s": {"any": 1}, "n": {"x": 1}, "a": [{"y": 1}], "p": {"k": 1}}', None, None),
    ("{}", None, None),
    ('{"id": 1, "di": "7", "ok": 7}', "di, ok", {"di": "7", "ok": 7}),
    ('{"ID": 1.10, "z": [1, {"k": null}]}', "ID, z", {"ID": 1.1, "z": [1, {"k": None}]}),
    ('{"x": null}', "x", {"x": None}),
    ('{"n": {"y": 2, "q": {"w": "a\\"b"}}}', "n.y, n.q.w", {"n.y": 2, "n.q.w": 'a"b'}),
    ('{"a": [{"y": 1}, {"w": 2}, {"w": 3}]}', "a[].w", {"a[1].w": 2, "a[2].w": 3}),
    ('{"m": {"k": {"w": 2}}}', "m{}.w", {"m{k}.w": 2}),
    ("{'id': 1, 'di': 2}", "di", {"di": 2}),
    ('{"i\\u0064": 1, "d\\u0069": 2}', "di", {"di": 2}),
    ('{"id": 1, "id": 2}', None, None),
    ('{"n": {"x": 1, "x": 2}, "di": 2}', "di", {"di": "2"}),
    ('{"d": {"e": {"f": {"g": {"h": {"i": {"j": 1}}}}}}}', "d", None),
]


def parsed(spark: Any, unknown_fields: Any) -> list[Any]:
    """Parse the values as one frame; gives the rows (value, reason, names)."""
    schemas = {"value": read_schema(SCHEMA, "schema")}
    rows = [(number, value.encode()) for number, (value, _, _) in enumerate(VALUES)]
    raw = spark.createDataFrame(rows, "n int, value binary")
    frame = parse(raw, schemas, unknown_fields=unknown_fields)
    found = frame.select(
        "n", *take_parsed(schemas, keeps_unknown=unknown_fields == "keep"), REASON, UNKNOWN
    ).collect()
    return sorted(found, key=lambda row: row["n"])


def test_rows_with_unknown_fields_name_them(spark: Any) -> None:
    for row, (value, names, _) in zip(parsed(spark, "drop"), VALUES, strict=True):
        assert row[REASON] is None
        assert COLUMN not in row["value"]
        assert row[UNKNOWN] == names, value


def test_unknown_fields_are_kept_as_json(spark: Any) -> None:
    for row, (value, names, kept) in zip(parsed(spark, "keep"), VALUES, strict=True):
        assert (row[REASON], row[UNKNOWN]) == (None, names), value
        found = row["value"][COLUMN]
        assert (found is None) == (names is None)
        if kept is not None:
            assert json.loads(found) == kept


def test_rows_with_unknown_fields_are_rejected(spark: Any) -> None:
    for row, (value, names, _) in zip(parsed(spark, "reject"), VALUES, strict=True):
        words = None if names is None else f"value has fields that are not in the schema: {names}"
        assert row[REASON] == words, value
