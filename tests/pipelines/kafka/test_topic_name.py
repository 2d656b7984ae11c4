"""The names that Kafka refuses are refused before any broker is asked."""

from __future__ import annotations

import pytest

from ottla.pipelines.kafka.topic_name import wrong_name


@pytest.mark.parametrize("name", ["a", "...", ".a", "-", "_x.Y-9", "a" * 249])
def test_names(name: str) -> None:
    assert wrong_name(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "a/b", "a\n", "a" * 250, 7, None])
def test_what_is_no_name(name: object) -> None:
    said = wrong_name(name)
    assert said is not None
    assert said.startswith(f"{name!r} is no topic's name; allowed: letters, digits, '.', '_'")
