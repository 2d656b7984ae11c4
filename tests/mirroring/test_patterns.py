"""Patterns match whole names."""

from __future__ import annotations

import pytest

from ottla.messaging.patterns import PatternError
from ottla.mirroring.patterns import Patterns
from ottla.mirroring.spec import MirrorSpec


def test_whole_names() -> None:
    found = Patterns(
        MirrorSpec(
            topics=("orders", "a.*"), exclude=("ab",), groups=("g.",), exclude_groups=("gx",)
        )
    )
    assert [found.topic(name) for name in ("orders", "orders2", "abc", "b")] == [
        True,
        False,
        True,
        False,
    ]
    assert found.excluded("ab")
    assert not found.excluded("abc")
    assert [found.group(name) for name in ("ga", "gx", "g")] == [True, False, False]


def test_what_is_no_pattern() -> None:
    with pytest.raises(PatternError, match="TOPIC: '\\['"):
        Patterns(MirrorSpec(topics=("[",)))
