"""Parts that several pages share."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.console.templates import address, environment


@pytest.mark.parametrize(
    ("page", "expected"),
    [(1, ["next"]), (2, ["prev", "next"]), (3, ["prev"])],
)
def test_the_pages_of_a_list(page: int, expected: list[str]) -> None:
    template: Any = environment().get_template("paging.html").module
    made = str(template.paging(page, 3, address("/a", q="<", page=1), address("/a", q="<", page=3)))
    found = [each for each in ("prev", "next") if f'rel="{each}"' in made]
    assert found == expected
    assert f"<span>{page} of 3</span>" in made
    assert "<span><" not in made
    assert made.count("/a?q=%3C&amp;page=") == len(expected)


def test_a_list_of_one_page_has_no_pages() -> None:
    template: Any = environment().get_template("paging.html").module
    assert not str(template.paging(1, 1, "/a", "/b")).strip()
