"""`python -m website.pictures.console`: photographs the pages of the console for docs/console.md.

The cluster is that of `console_shop`; the browser is Debian's Chromium.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, ViewportSize, sync_playwright

from website.pages import ROOT
from website.pictures.console_shop import PAGES, Shop, open_shop

FOLDER: Final = ROOT / "docs" / "pictures" / "console"
PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome")
FOUND: Final = "search"
PLAN: Final = "reset"
TELEPHONE: Final = "telephone"
NAMES: Final = (*PAGES, FOUND, PLAN, TELEPHONE)
SIZE: Final[ViewportSize] = {"width": 1100, "height": 640}
MAX_HEIGHT: Final = 1400
FOLLOWED_S: Final = 25.0
"""The charts and trends have two samples then."""


@contextmanager
def console(shop: Shop) -> Iterator[str]:
    """The address of a console that runs meanwhile."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "ottla", "console", "-b", shop.bootstrap),
            *("--listen", "127.0.0.1:0", "--registry", shop.registry.url),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+:\d+", process.stdout.readline())
        assert found is not None
        yield found[0]
    finally:
        process.terminate()
        process.wait()


def photograph(folder: Path, followed_s: float = FOLLOWED_S) -> None:
    """A picture of each page, of a search, of a plan to move offsets, and one of a telephone in the
    dark. `followed_s`: how long the console has watched the cluster before.
    """
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        raise SystemExit("There is no Chromium here. On Debian: apt-get install chromium")
    folder.mkdir(parents=True, exist_ok=True)
    with open_shop() as shop, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        with console(shop) as address:
            page = browser.new_page(viewport=SIZE)
            # The lag in time is looked for while somebody has the group's page open.
            page.goto(f"{address}{PAGES['group']}")
            time.sleep(followed_s)
            for name, path in PAGES.items():
                page.goto(f"{address}{path}")
                take(page, folder / f"{name}.png")
            search(page, address)
            take(page, folder / f"{FOUND}.png")
            plan(page, address)
            take(page, folder / f"{PLAN}.png")
            narrow = browser.new_page(viewport={"width": 400, "height": 800}, color_scheme="dark")
            narrow.goto(f"{address}{PAGES['overview']}")
            narrow.get_by_text("being looked for").wait_for(state="hidden")
            narrow.screenshot(path=folder / f"{TELEPHONE}.png")
        browser.close()


def take(page: Page, path: Path) -> None:
    """All of the page, unless it is very long."""
    page.wait_for_load_state("networkidle")
    # What takes long comes when the page asks again.
    page.get_by_text("being looked for").wait_for(state="hidden")
    height = int(page.evaluate("document.documentElement.scrollHeight"))
    page.set_viewport_size({**SIZE, "height": min(max(height, 400), MAX_HEIGHT)})
    page.screenshot(path=path)
    page.set_viewport_size(SIZE)


def search(page: Page, address: str) -> None:
    """All orders of a customer."""
    page.goto(f"{address}{PAGES['messages']}?json=customer%3DGrace")
    page.click("#search")
    page.locator("#progress", has_text="100 %").wait_for()


def plan(page: Page, address: str) -> None:
    """Move the offsets of a group, as far as the plan."""
    page.goto(f"{address}{PAGES['group']}")
    page.click("text=Move its offsets")
    page.click("text=Show the plan")
    page.wait_for_url("**/group/plan")


if __name__ == "__main__":
    photograph(FOLDER)
