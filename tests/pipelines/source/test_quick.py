"""A text that is taken for plain is one in which a closer look finds nothing."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ottla.pipelines.source import parse as parse_module
from ottla.pipelines.source.fields import kind_of
from ottla.pipelines.source.parse import REASON, UNKNOWN, parse, read_schema, take_parsed
from ottla.pipelines.source.plain import MAX_FIELDS, plain
from ottla.pipelines.source.quick import is_plain, may_go_on

pytestmark = pytest.mark.spark

FLAT = (
    "id BIGINT, s STRING, d DOUBLE, f FLOAT, b TINYINT, o BOOLEAN, t TIMESTAMP, day DATE, "
    "k DECIMAL(5,2)"
)
NUMBERS = "id BIGINT, s STRING, a ARRAY<INT>, e ARRAY<DOUBLE>"
NESTED = (
    "id INT, t TIMESTAMP, n STRUCT<x: INT, t: DATE, q: STRUCT<z: STRING>>, "
    "a ARRAY<STRUCT<x: INT, k: DECIMAL(5,2)>>, m MAP<STRING, STRUCT<x: INT>>, "
    "p MAP<STRING, TIMESTAMP>, l ARRAY<DECIMAL(5,2)>"
)
USUAL = {
    "id": ["1", "-7"],
    "x": ["3"],
    "s": ['"text"', '"a \\"b\\": 1"', '"x, y"', '"}"', '"O\'Brien"', "5"],
    "z": ['"text"', '"\\u0041"'],
    "d": ["1.5", "7", "-0.25", "1e9"],
    "f": ["1.5"],
    "b": ["5", "-5", "127"],
    "o": ["true", "false"],
    "t": ['"2026-01-02T03:04:05Z"', '"2026-01-02 03:04:05.123"', "1700000000"],
    "day": ['"2026-01-02"'],
    "k": ["1.25", '"1.25"', "100"],
    "n": ["{}", '{"x":1}', '{"x":1,"t":"2026-01-02","q":{"z":"a"}}'],
    "a": ["[]", "[1]", '[{"x":1,"k":1.25},{"x":2,"k":"1.5"}]', "[null]"],
    "e": ["[]", "[1.5,2]"],
    "m": ["{}", '{"one":{"x":1},"two":{"x":2}}'],
    "p": ["{}", '{"one":"2026-01-02T03:04:05Z"}'],
    "l": ["[1.25,2]"],
}
ODD = [
    *("null", "1e999", "-1e400", "Infinity", "NaN", '"INF"', "200", "255", "-200", "1.239", "1,5"),
    *('"1,5"', '"12:30"', '"2026"', '"2026-01"', '"2026-01-02x"', "17000000000000000", "''"),
    *(
        "'a'",
        "'},{'",
        "{}",
        '{"w":1}',
        "[]",
        '[{"w":1}]',
        '{"one":{"w":1}}',
        "[1,2]",
        "[[1]]",
        '""',
    ),
    *(
        '{"x":1,"w":{"x":2}}',
        '{"one":"12:30"}',
        "[1.239]",
        '["1,5"]',
        '{"t":"2026"}',
        "1e2",
        "\\u0031",
    ),
    *('\'"t":"2026-01-02T03:04:05Z"\'', '"{\\"t\\":\\"2026-01-02\\"}"', "tru", '"a\nb"'),
]
NAMES = ["w", "ID", "i\\u0064", "t ", "", 'w\\"', "x"]
BEHIND = ["", " ", "\n", "}", " x", "{}", ',{"id":1}', "]", "null", "\x00"]


def texts(schema: str, count: int) -> list[str]:
    """Return objects of a schema, most of them written in the usual way, from a fixed seed."""
    chance = random.Random(schema)
    own = read_schema(schema, "schema").fieldNames()
    return [_text(chance, own) for _ in range(count)]


def _text(chance: random.Random, own: list[str]) -> str:
    odd = chance.choice([0, 0, 0.05, 0.2])
    colon, comma = chance.choice([(":", ","), (": ", ", "), (" :\t", "\n,")])
    names = list(own)
    if chance.random() < 0.3:
        names = chance.sample(names, chance.randint(0, len(names)))
    pairs = []
    for name in names:
        value = chance.choice(USUAL[name])
        if chance.random() < odd:
            value = chance.choice(ODD)
        quote = "'" if chance.random() < odd / 8 else '"'
        if chance.random() < odd / 4:
            name = chance.choice([*NAMES, *own])
        pairs.append(f"{quote}{name}{quote}{colon}{value}")
        if chance.random() < odd / 4:
            pairs.append(f'"{chance.choice([*NAMES, *own])}"{colon}{chance.choice(ODD)}')
    behind = chance.choice(BEHIND) if chance.random() < odd else ""
    return f"{{{comma.join(pairs)}}}{behind}"


def rows(spark: Any, schema: str, values: list[str], unknown_fields: Any = "keep") -> list[Any]:
    schemas = {"value": read_schema(schema, "schema")}
    data = [(number, value.encode()) for number, value in enumerate(values)]
    frame = parse(
        spark.createDataFrame(data, "n int, value binary"), schemas, unknown_fields=unknown_fields
    )
    # As text: Python takes no times of all years, which rejected rows may have.
    taken = [column.cast("string") for column in take_parsed(frame, schemas)]
    found = frame.select("n", *taken, REASON, UNKNOWN).collect()
    return [str(row) for row in sorted(found, key=lambda row: row["n"])]


@pytest.mark.parametrize("schema", [FLAT, NUMBERS, NESTED])
def test_plain_texts_parse_as_with_a_closer_look(
    spark: Any, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    values = texts(schema, 3_000)
    quick = rows(spark, schema, values)
    monkeypatch.setattr(parse_module, "is_plain", lambda *_: F.lit(False))
    for value, one, other in zip(values, quick, rows(spark, schema, values), strict=True):
        assert one == other, value


def proved(spark: Any, schema: str, values: list[str]) -> list[bool]:
    """Tell of each text whether it is taken for plain."""
    from pyspark.sql import functions as F  # noqa: N812

    fields = read_schema(schema, "schema")
    data = [(number, value.encode()) for number, value in enumerate(values)]
    text = F.col("value").cast("string")
    frame = spark.createDataFrame(data, "n int, value binary").withColumns(
        {"parsed": F.from_json(text, fields), "goes_on": may_go_on(F.col("value"))}
    )
    column = is_plain(F.col("parsed"), F.col("goes_on"), text, fields)
    found = frame.select("n", column.alias("plain")).collect()
    return [bool(row["plain"]) for row in sorted(found, key=lambda row: row["n"])]


@pytest.mark.parametrize("schema", [FLAT, NUMBERS, NESTED])
def test_most_usual_texts_are_plain(spark: Any, schema: str) -> None:
    found = proved(spark, schema, texts(schema, 500))
    assert sum(found) > len(found) / 4


def test_nulls_other_orders_and_spaces_are_plain(spark: Any) -> None:
    values = [
        '{"id":1,"s":"a"}',
        '{"id": 1, "s": "a, b"}',
        '{"s":null,"id":1}',
        '{\n  "s": "}",\n  "id": 1\n}\n',
        '{"id":1}',
        "{}",
    ]
    assert all(proved(spark, "id INT, s STRING", values))


def test_too_many_fields_have_no_expression(spark: Any) -> None:
    fields = ", ".join(f"f{number} INT" for number in range(MAX_FIELDS + 1))
    assert plain(kind_of(read_schema(fields, "schema"))) is None
    assert rows(spark, fields, ['{"f1":1}', '{"f1":1,"g":{}}'])[1].count("g") == 2


def test_a_text_of_the_most_fields_is_searched(spark: Any) -> None:
    fields = ", ".join(f"f{number} STRING" for number in range(MAX_FIELDS))
    pairs = [f'"f{number}":"a, b"' for number in range(MAX_FIELDS)]
    written = f"{{{','.join(pairs)}}}"
    reverse = f"{{{','.join(reversed(pairs))}}}"
    assert proved(spark, fields, [written, reverse]) == [True, False]
