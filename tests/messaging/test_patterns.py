import pytest

from ottla.messaging.patterns import PatternError, name_filter


def test_names_with_a_match_are_listed() -> None:
    matches = name_filter("^orders|-eu$")
    assert [name for name in ("orders", "my-orders", "sales-eu", "eu") if matches(name)] == [
        "orders",
        "sales-eu",
    ]
    assert name_filter(None)("any")


def test_what_is_not_a_regular_expression_is_refused() -> None:
    with pytest.raises(PatternError, match=r"^--filter: '\(' is not a regular expression: missing"):
        name_filter("(")
