"""A page that never answers ends its test, which says where."""

from __future__ import annotations

import pytest
from tests.system.watched_browser import PROGRAM, HungError, watched_browser

pytestmark = pytest.mark.skipif(not PROGRAM, reason="no Chromium on the PATH")


def test_a_call_without_an_end_is_ended_and_the_next_browser_works() -> None:
    with watched_browser() as watched:
        page = watched.browser.new_page()
        hung = pytest.raises(HungError, match="the loop took longer")
        with hung, watched.within(1, lambda: "the loop"):
            page.evaluate("for (;;);")
        with watched.within(60, lambda: "the next page") as browser:
            assert browser.new_page().evaluate("1 + 1") == 2
