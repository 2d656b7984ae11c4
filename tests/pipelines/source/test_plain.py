"""A plain text has nothing that a closer look would find; most texts are plain."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ottla.pipelines.source import closer_look
from ottla.pipelines.source.ddl import read_ddl
from ottla.pipelines.source.parse import REASON, UNKNOWN, parse, read_schema, take_parsed
from ottla.pipelines.source.plain import MAX_FIELDS, plain
from ottla.pipelines.spark.jvm.plain_object import SETTING

SCHEMA = (
    "id BIGINT, s STRING, dec DECIMAL(5,2), whole DECIMAL(3,0), at TIMESTAMP, day DATE, "
    "local TIMESTAMP_NTZ, n STRUCT<x: INT, q: STRUCT<z: DATE>>, a ARRAY<DECIMAL(5,2)>, "
    "m MAP<STRING, DATE>, r ARRAY<STRUCT<y: DATE>>"
)


def is_plain(text: str, schema: str = SCHEMA) -> bool:
    kind = read_ddl(schema)
    assert kind is not None
    expression = plain(kind)
    return expression is not None and re.search(expression, text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"s": "a\\"}, {\\"day\\": 1", "dec": 1.2300, "whole": -12.0}',
        '{"dec": "1.5", "at": "2026-01-02T12:30:00.123456789+01:00", "day": "2026-1-2"}',
        '{ "at" : 1763800000 , "local":"2026-01-02 12:30:15.5" }',
        '{"at": "2026-01-02", "dec": null, "n": null, "a": [1, null, 2.25], "m": {"k": null}}',
        '{"n": {"x": 1, "q": {"z": "2026-01-02"}}, "r": [{"y": "2026-01-02"}, {}]}',
        '{"a": [], "m": {}, "s": "at: 12:30"}',
        '\n{\n  "s": "}",\n  "id": 1\n}\n',
        '{"id":1,"id":2}',
        r'{"s": "\ud83d\uDE00, \\ud83d, \ud55c, \u00e4"}',
    ],
)
def test_the_usual_forms_are_plain(text: str) -> None:
    assert is_plain(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"dec": "1,5"}',
        r'{"s": "\ud83d"}',
        r'{"s": "\\\uDE00"}',
        r'{"m": {"\ud83d ": null}}',
        '{"dec": 1.239}',
        '{"dec": 1e0}',
        '{"whole": 1.5}',
        '{"at": "12:30"}',
        '{"at" :"2026"}',
        '{"at": 17638000000000}',
        '{"local": "2026-01-02T12:30:00Z"}',
        '{"day": "2026-01-02T12:30"}',
        '{"a": [1, 2.239]}',
        '{"m": {"k": "2026"}}',
        '{"n": {"q": {"z": "2026"}}}',
        '{"r": [{"y": "2026-01-02"}, {"y": "2026"}]}',
        "{'day': '2026-01-02'}",
        '{"d\\u0061y": "2026-01-02"}',
        '{"more": {"day": "2026"}}',
        '{"more": 1}',
        '{"n": {"x": 1, "y": 1}}',
        '{"r": [{"y": "2026-01-02", "x": 1}]}',
        '{"s": {"any": 1}}',
        '{"id": 1} {}',
        '{"id": 1}}',
        '{"id": 1',
        '[{"id": 1}]',
    ],
)
def test_all_others_are_not(text: str) -> None:
    assert not is_plain(text)


@pytest.mark.parametrize(
    ("kind", "plain_values", "others"),
    [
        ("DOUBLE", ["1", "-0.5", "1e9", "1E-400", "null"], ["1e999", "1e100", "Infinity", "NaN"]),
        ("DOUBLE", ["1" * 199], ["1" * 310, f"0.{'1' * 310}", '"1"']),
        ("FLOAT", ["1.5", "3e9"], ["1e39", "1" * 40]),
        ("TINYINT", ["0", "127", "-127", "null"], ["128", "200", "255", "-129.5"]),
        ("STRING", ['"a\\"b"', "1", "true", "null"], ["{}", "[]"]),
        ("INT", ["1", "null"], ['"1"', "{}"]),
    ],
)
def test_numbers_and_texts(kind: str, plain_values: list[str], others: list[str]) -> None:
    for colon in (":", ": ", " : "):
        for value in plain_values:
            assert is_plain(f'{{"x"{colon}{value}}}', f"x {kind}"), value
        for value in others:
            assert not is_plain(f'{{"x"{colon}{value}}}', f"x {kind}"), value


def test_a_name_that_json_writes_in_another_way_is_not_plain() -> None:
    assert not is_plain('{"a\\"b": 1}', '`a"b` INT')
    for name in ("a b", "a/b", "größe", "$.*"):
        assert is_plain(f'{{"{name}": 1}}', f"`{name}` INT")


def test_long_texts_take_no_stack() -> None:
    values = ", ".join("1.25" for _ in range(50_000))
    assert is_plain(f'{{"a": [{values}]}}')
    assert not is_plain(f'{{"a": [{values}, 1.255]}}')


def test_too_many_fields_have_no_expression() -> None:
    fields = ", ".join(f"f{number} INT" for number in range(MAX_FIELDS + 1))
    assert not is_plain("{}", fields)
    assert is_plain("{}", fields.rpartition(",")[0])


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


@contextmanager
def setting(spark: Any, name: str, value: str) -> Iterator[None]:
    spark.conf.set(name, value)
    yield
    spark.conf.unset(name)


def rows(spark: Any, schema: str, values: list[str], unknown_fields: Any = "keep") -> list[Any]:
    schemas = {"value": read_schema(schema, "schema")}
    data = [(number, value.encode()) for number, value in enumerate(values)]
    frame = parse(
        spark.createDataFrame(data, "n int, value binary"), schemas, unknown_fields=unknown_fields
    )
    # As text: Python takes no times of all years, which rejected rows may have.
    taken = [column.cast("string") for column in take_parsed(schemas)]
    found = frame.select("n", *taken, REASON, UNKNOWN).collect()
    return [str(row) for row in sorted(found, key=lambda row: row["n"])]


@pytest.mark.spark
@pytest.mark.parametrize("schema", [FLAT, NUMBERS, NESTED])
def test_plain_texts_parse_as_with_a_closer_look(
    spark: Any, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = texts(schema, 3_000)
    at_once = rows(spark, schema, values)
    with setting(spark, SETTING, "false"):
        proved = rows(spark, schema, values)
        monkeypatch.setattr(closer_look, "plain", lambda _: None)
        looked_at = rows(spark, schema, values)
    for value, *found in zip(values, at_once, proved, looked_at, strict=True):
        assert found[0] == found[1] == found[2], value


@pytest.mark.spark
def test_a_schema_with_too_many_fields_is_looked_at_closely(spark: Any) -> None:
    fields = ", ".join(f"f{number} INT" for number in range(MAX_FIELDS + 1))
    found = rows(spark, fields, ['{"f1":1}', '{"f1":1,"g":{}}', '{"f1":1}}'])
    assert ["g" in row for row in found] == [False, True, False]
    assert "more text" in found[2]


MOST_FIELDS = ", ".join(f"f{number} STRING" for number in range(MAX_FIELDS))


def texts_of_most_fields() -> list[str]:
    """In the order of the schema, and in the other one."""
    pairs = [f'"f{number}":"a, b"' for number in range(MAX_FIELDS)]
    return [f"{{{','.join(pairs)}}}", f"{{{','.join(reversed(pairs))}}}"]


@pytest.mark.spark
def test_the_expression_of_the_most_fields_fits_a_tasks_stack(spark: Any) -> None:
    kind = read_ddl(MOST_FIELDS)
    assert kind is not None
    frame = spark.createDataFrame([(text,) for text in texts_of_most_fields()], "text STRING")
    expression = plain(kind)
    assert expression is not None
    found = [
        row["plain"] for row in frame.select(frame.text.rlike(expression).alias("plain")).collect()
    ]
    assert found == [is_plain(text, MOST_FIELDS) for text in texts_of_most_fields()]
    assert found == [True, False]


@pytest.mark.full
@pytest.mark.spark
def test_a_text_of_the_most_fields_is_looked_at(spark: Any) -> None:
    first, second = rows(spark, MOST_FIELDS, texts_of_most_fields())
    assert first.split(", ", 1)[1] == second.split(", ", 1)[1]
