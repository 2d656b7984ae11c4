"""The names of fields that a schema lacks, found without Spark."""

from __future__ import annotations

import pytest

from ottla.pipelines.source.ddl import read_ddl
from ottla.pipelines.source.unknown_names import unknown_names

SCHEMA = (
    "id INT, n STRUCT<x: INT>, a ARRAY<STRUCT<y: INT>>, m MAP<STRING, STRUCT<y: INT>>, s STRING"
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (b'{"id": 1, "s": {"any": 1}}', ()),
        (b'{"n": {"w": 1}, "b": 1, "c": 2}', ("b", "c", "n.w")),
        (b'{"a": [{"y": 1}, {"w": 1}, {"w": 2}, 7], "m": {"k": {"w": 1}}}', ("a[].w", "m{}.w")),
        (b'{"n": 5, "a": {}, "m": []}', ()),
        (b"[1]", None),
        (b"\xff", None),
        (b"[" * 100_000, None),
    ],
)
def test_fields_are_named_by_their_paths(text: bytes, names: tuple[str, ...] | None) -> None:
    kind = read_ddl(SCHEMA)
    assert kind is not None
    assert unknown_names(text, kind) == names
