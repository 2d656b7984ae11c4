"""Whatever a parser might change is found in the text; most texts have nothing to find."""

from __future__ import annotations

import re

import pytest

from ottla.pipelines.source.ddl import read_ddl
from ottla.pipelines.source.forms import HIDING, MAX_EXPRESSIONS, hiding, unusual

SCHEMA = (
    "id BIGINT, s STRING, dec DECIMAL(5,2), whole DECIMAL(3,0), at TIMESTAMP, day DATE, "
    "local TIMESTAMP_NTZ, n STRUCT<x: INT, q: STRUCT<z: DATE>>, a ARRAY<DECIMAL(5,2)>, "
    "m MAP<STRING, DATE>, r ARRAY<STRUCT<y: DATE>>"
)


def is_found(text: str, schema: str = SCHEMA) -> bool | None:
    kind = read_ddl(schema)
    assert kind is not None
    expressions = unusual(kind)
    if expressions is None:
        return None
    is_hidden = any(one in text for one in HIDING) and re.search(hiding(kind), text)
    return bool(is_hidden) or any(re.search(one, text) for one in expressions)


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
    ],
)
def test_the_usual_forms_are_not_found(text: str) -> None:
    assert is_found(text) is False


@pytest.mark.parametrize(
    "text",
    [
        '{"dec": "1,5"}',
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
    ],
)
def test_all_others_are(text: str) -> None:
    assert is_found(text) is True


def test_types_that_need_no_form_have_no_expression() -> None:
    assert is_found("{}", "id INT, d DOUBLE, n STRUCT<s: STRING>, a ARRAY<INT>") is None


def test_a_name_that_json_may_write_in_another_way_is_always_found() -> None:
    for name in ('a"b', "a/b", "größe"):
        assert is_found("{}", f"`{name}` DATE") is True
    assert is_found('{"a b": "2026-01-02"}', "`a b` DATE") is False


def test_long_texts_take_no_stack() -> None:
    values = ", ".join("1.25" for _ in range(50_000))
    assert is_found(f'{{"a": [{values}]}}') is False
    assert is_found(f'{{"a": [{values}, 1.255]}}') is True


def test_many_names_are_looked_for_together() -> None:
    names = [f"day{number}" for number in range(MAX_EXPRESSIONS + 1)]
    schema = ", ".join(f"{name} DATE" for name in names)
    kind = read_ddl(schema)
    assert kind is not None
    assert len(unusual(kind) or ()) == 1
    assert len(unusual(read_ddl("a DATE, b DATE")) or ()) == 2  # type: ignore[arg-type]
    for name in names:
        assert is_found(f'{{"{name}": "2026-01-02"}}', schema) is False
        assert is_found(f'{{"{name}": "2026"}}', schema) is True


def test_one_name_with_two_types_is_found_unless_it_has_the_forms_of_both() -> None:
    schema = "x DATE, n STRUCT<x: TIMESTAMP>"
    assert is_found('{"x": "2026-01-02", "n": {"x": "2026-01-02"}}', schema) is False
    assert is_found('{"x": "2026-01-02", "n": {"x": "2026-01-02T12:30:00Z"}}', schema) is True
