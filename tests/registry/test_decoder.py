"""What data may have been decoded to."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.registry.decoder import as_json, may_be_decoded


@pytest.mark.parametrize(
    "value",
    [7, -1, 1.5, 1e22, -0.0, "k", 'a "b" é', None, True, {"id": 7, "of": [1, {"a": b"\xff"}]}, []],
)
def test_what_is_written_as_json_is_recognized(value: Any) -> None:
    assert may_be_decoded(as_json(value).decode())


@pytest.mark.parametrize(
    "text", ["order-17", "007", "1.10", '{"id":7}', "k", "", " 7", "[", "\x00"]
)
def test_what_no_schema_writes(text: str) -> None:
    assert not may_be_decoded(text)
