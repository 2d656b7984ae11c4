"""Names that no other test of the process has."""

from __future__ import annotations

import re

import pytest

from ottla.testing.topics import MAX_NAME, unique_name


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("topic", "topic-"),
        ("test_x[a b/c]", "test_x-a-b-c-"),
        ("über", "ber-"),
        ("a" * 300, "a" * MAX_NAME + "-"),
        ("", "-"),
    ],
)
def test_a_name_that_kafka_allows(text: str, start: str) -> None:
    first, second = unique_name(text), unique_name(text)
    assert first != second
    for name in (first, second):
        assert re.fullmatch(re.escape(start) + r"\d+", name)
        assert re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name)
