"""What a commit says of the fields that a schema lacks."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.pipelines.unknown_fields import (
    MAX_NAMES,
    MAX_SAID_CHARS,
    UnknownFields,
    format_names,
    read_unknown_fields,
)


def test_what_is_written_is_read_again() -> None:
    unknown = UnknownFields("keep", ("delay_min", "n.y"))
    assert unknown.document() == {"did": "keep", "fields": ["delay_min", "n.y"]}
    assert read_unknown_fields(unknown.document()) == unknown


@pytest.mark.parametrize(
    "said", [None, [], {"did": "drop"}, {"did": 1, "fields": ["a"]}, {"did": "drop", "fields": [1]}]
)
def test_what_is_of_others_is_nothing(said: Any) -> None:
    assert read_unknown_fields(said) is None


def test_names_have_limits() -> None:
    many = UnknownFields("drop", tuple(f"{number}{'x' * 300}" for number in range(100)))
    fields = many.document()["fields"]
    assert len(fields) == MAX_NAMES
    assert max(map(len, fields)) == 100
    said = format_names([many, many])
    assert said is not None
    assert len(said) == MAX_SAID_CHARS
    assert format_names([]) is None
    assert (
        format_names([UnknownFields("drop", ("a", "b")), UnknownFields("drop", ("b",))]) == "a, b"
    )
