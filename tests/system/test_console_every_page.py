"""Every page of the console in a browser: axe-core, the keyboard alone, a telephone, both colours.

The pages are those of the pictures' shop, so that a new one is photographed and looked at here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import pytest
from playwright.sync_api import Browser, Page
from starlette.routing import compile_path
from tests.console.served_console import Visitor, console_of, serving
from tests.system.watched_browser import PROGRAM, TEST_WITHIN_S, WatchedBrowser, watched_browser
from website.pictures.console_shop import PAGES as SHOP_PAGES
from website.pictures.console_shop import open_shop

from ottla.console.application import PAGES
from ottla.console.login import PasswordLogin
from ottla.console.schemas import Schemas
from ottla.registry.client import registry_at
from website.pictures import console as pictures

in_browser = pytest.mark.skipif(not PROGRAM, reason="no Chromium on the PATH")
AXE = Path(__file__).parent / "vendor" / "axe-4.10.3.min.js"
SCHEMES: Final[dict[Literal["light", "dark"], str]] = {
    "light": "{resultTypes: ['violations']}",
    "dark": "{resultTypes: ['violations'], runOnly: ['color-contrast']}",
}
NO_PAGES = ("/jump", "/places", "/charts/", "/file")
MORE = (
    "/nowhere",
    "/topics/orders/messages?start=time",
    "/topics?q=none",
    "/schema/new",
    "/group?name=lost",
)
MAX_TABS = 400
REACHED = """() => {
  const each = document.activeElement;
  if (!each || each === document.body) return null;
  each.dataset.reached = '1';
  return getComputedStyle(each).outlineStyle !== 'none' || each.matches('summary, main');
}"""
THINGS = "a[href], button, input:not([type=hidden]), select, textarea, summary"
MISSED = """(all) => all
  .filter((each) => !each.disabled && each.checkVisibility() && !each.dataset.reached)
  .map((each) => each.outerHTML.slice(0, 200))"""

LATER = "(all) => all.forEach((each) => (each.textContent = '23 h 59 min ago'))"
"""What a page says when the shop's pipeline has been silent for long."""
CUT = """(all) => all
  .filter((each) => each.scrollWidth > each.clientWidth)
  .map((each) => each.getAttribute('aria-label'))"""


class Looked(NamedTuple):
    """A browser, and a console of the shop."""

    browser: Browser
    visitor: Visitor

    def page(self, **options: Any) -> Page:
        return self.browser.new_context(
            base_url=f"http://127.0.0.1:{self.visitor.port}", **options
        ).new_page()


@pytest.fixture(scope="module")
def opened() -> Iterator[tuple[WatchedBrowser, Visitor]]:
    with open_shop() as shop, watched_browser() as watched:
        schemas = Schemas(registry_at(shop.registry.url), shop.registry.url)
        with serving(console_of(shop.bootstrap, schemas=schemas)) as visitor:
            yield watched, visitor


@pytest.fixture
def looked(opened: tuple[WatchedBrowser, Visitor]) -> Iterator[Looked]:
    watched, visitor = opened
    with watched.within(TEST_WITHIN_S, lambda: "the test") as browser:
        yield Looked(browser, visitor)


def test_the_shop_has_something_for_each_page() -> None:
    paths = [path.partition("?")[0] for path in SHOP_PAGES.values()]
    for address in PAGES:
        if not address.startswith(NO_PAGES[:3]) and not address.endswith(NO_PAGES[3]):
            pattern, _, _ = compile_path(address)
            assert any(pattern.match(path) for path in paths), address


@in_browser
def test_axe_finds_nothing(looked: Looked) -> None:
    # Axe is a script of the test's: the policy of the pages would not let it run.
    page = looked.page(bypass_csp=True)
    found = []
    for path in (*SHOP_PAGES.values(), *MORE):
        page.goto(path)
        found += violations(page, path)
    address = f"http://127.0.0.1:{looked.visitor.port}"
    pictures.plan(page, address)
    found += violations(page, "the plan of a reset")
    pictures.search(page, address)
    found += violations(page, "a search")
    page.context.close()
    assert found == []


def violations(page: Page, path: str) -> list[tuple[str, str, list[str]]]:
    """In light colours; in dark ones only the colours are others."""
    page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
    page.evaluate(AXE.read_text())
    found = []
    for scheme, rules in SCHEMES.items():
        page.emulate_media(color_scheme=scheme)
        found += [
            (f"{path} {scheme}", each["id"], [node["html"] for node in each["nodes"]])
            for each in page.evaluate(f"axe.run({rules})")["violations"]
        ]
    return found


@in_browser
def test_each_page_is_reached_and_left_by_the_keyboard(looked: Looked) -> None:
    """All that can be clicked is reached with Tab, and shows that it has the focus."""
    page = looked.page()
    for path in (*SHOP_PAGES.values(), *MORE):
        page.goto(path)
        page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
        # A page that is live would replace what was reached.
        page.evaluate("document.querySelector('#live')?.removeAttribute('hx-get')")
        page.evaluate("window.htmx?.process(document.body)")
        ends, missed = 0, ["the page is not left"]
        for _ in range(MAX_TABS):
            page.keyboard.press("Tab")
            is_shown = page.evaluate(REACHED)
            assert is_shown is not False, (path, page.evaluate("document.activeElement.outerHTML"))
            # Some pages begin with the focus in their form: the rest comes the second time.
            if is_shown is None:
                ends += 1
                missed = page.eval_on_selector_all(THINGS, MISSED)
                if not missed or ends == 2:
                    break
        assert missed == [], path
    page.context.close()


@in_browser
def test_each_page_fits_a_telephone(looked: Looked) -> None:
    page = looked.page(viewport={"width": 400, "height": 800})
    for path in (*SHOP_PAGES.values(), *MORE):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, path
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (int(re.findall(r"\d+", colour)[0]) < 128) is (scheme == "dark"), path
    page.context.close()


@in_browser
def test_no_table_is_cut_at_the_width_of_the_pictures(looked: Looked) -> None:
    page = looked.page(viewport=pictures.SIZE)
    for path in SHOP_PAGES.values():
        page.goto(path)
        page.eval_on_selector_all(".since", LATER)
        assert page.eval_on_selector_all(".scroll", CUT) == [], path
    page.context.close()


@in_browser
def test_the_login_page(looked: Looked) -> None:
    console = console_of("127.0.0.1:1")
    console.login = PasswordLogin("correct horse", console.access)
    with serving(console) as visitor:
        page = Looked(looked.browser, visitor).page(bypass_csp=True)
        page.goto("/topics")
        assert violations(page, "/login") == []
        page.set_viewport_size({"width": 400, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.context.close()
