"""The limits of texts inside of a column."""

import pytest

from ottla.pipelines.target.text_limits import fits_limits

SHORT = "{0} IS NULL OR length({0}) <= 3"


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        ("string", None),
        ("decimal(10,3)", None),
        ("struct<a:string,b:decimal(10,3)>", None),
        ("varchar(3)", SHORT.format("`v`")),
        ("char(3)", SHORT.format("`v`")),
        (
            "struct<n:decimal(10,2),a b:varchar(3)>",
            f"`v` IS NULL OR (({SHORT.format('`v`.`a b`')}))",
        ),
        (
            "array<varchar(3)>",
            f"`v` IS NULL OR ((forall(`v`, ottla_e0 -> {SHORT.format('ottla_e0')})))",
        ),
        (
            "map<varchar(3),array<int>>",
            f"`v` IS NULL OR ((forall(map_keys(`v`), ottla_e0 -> {SHORT.format('ottla_e0')})))",
        ),
    ],
)
def test_a_condition_for_each_text_inside(kind: str, condition: str | None) -> None:
    assert fits_limits(kind, "`v`") == condition


def test_lists_of_lists_have_names_of_their_own() -> None:
    found = fits_limits("map<string,array<struct<code:varchar(3)>>>", "`v`")
    assert found is not None
    assert "forall(map_values(`v`), ottla_e0 -> " in found
    assert "forall(ottla_e0, ottla_e1 -> " in found
    assert f"({SHORT.format('ottla_e1.`code`')})" in found
