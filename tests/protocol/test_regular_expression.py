"""Patterns of clients: whole matches, refusals, and no backtracking."""

from __future__ import annotations

import pytest

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.regular_expression import compile_expression


def test_the_whole_text_matches_or_nothing() -> None:
    expression = compile_expression("orders-[0-9]+")
    assert expression.fullmatch("orders-17") is not None
    assert expression.fullmatch("orders-17b") is None
    assert expression.fullmatch("my orders-17") is None


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a", "missing \\)"),
        ("a(?=b)", "invalid perl operator"),
        ("(a)\\1", "invalid escape sequence"),
        ("a{1001}", "invalid repetition size"),
        ("(((a{100}){100}){100}){100}", "bad repetition|too large|repetition"),
        ("b" * 1_000_000, "too large"),
    ],
)
def test_patterns_that_are_refused(pattern: str, reason: str) -> None:
    with pytest.raises(ApiError, match=reason) as refused:
        compile_expression(pattern)
    assert refused.value.code is ErrorCode.invalid_regular_expression


def test_a_pattern_that_would_make_re_backtrack() -> None:
    """Python's `re` would try 2 ** 10,000 ways."""
    assert compile_expression("(a+)+b").fullmatch("a" * 10_000) is None
