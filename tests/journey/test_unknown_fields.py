"""Which of a message's fields a pipeline's schema lacks."""

from __future__ import annotations

import pytest

from ottla.journey.unknown_fields import unknown_fields_of
from ottla.timelines.delivery_metadata import UnknownFields

UNKNOWN = UnknownFields("drop", ("di", "n.y", "a[].z", "m{}.z", "dot.ted"))


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        (b'{"id": 1, "n": {"x": 1}}', None),
        (b'{"di": null}', ["di"]),
        (b'{"n": {"y": 1}, "y": 2}', ["n.y"]),
        (b'{"a": [{"y": 1}, {"z": 1}], "m": {"k": {"z": 1}}}', ["a[].z", "m{}.z"]),
        (b'{"dot.ted": 1, "n": [], "a": {}}', ["dot.ted"]),
        (b"[1]", None),
        (b"no json", None),
        (b"[" * 100_000, None),
        (None, None),
    ],
)
def test_only_fields_that_the_message_has_are_named(
    value: bytes | None, fields: list[str] | None
) -> None:
    found = unknown_fields_of(value, UNKNOWN)
    assert found == (None if fields is None else {"did": "drop", "fields": fields})
    assert unknown_fields_of(value, None) is None
