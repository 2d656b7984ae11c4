"""A browser for tests of which every call ends.

Several calls of Playwright have no time limit: `count`, `evaluate`, `close` and `new_page` wait as
long as the page does. Where one does not end, the browser is killed: the call raises, and the test
says which call it was, and what the browser and this process did at the time.
"""

from __future__ import annotations

import faulthandler
import os
import re
import shlex
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Playwright, sync_playwright
from playwright.sync_api import Error as PlaywrightError
from tests.system.chromium import chromium

PROGRAM = chromium() or ""
TEST_WITHIN_S = 240.0
"""Less than pytest's own limit, at which a worker ends and nobody says why."""
MAX_SHOWN = 12_000
PROCESSES = re.compile("chrom|playwright", re.IGNORECASE)


class HungError(AssertionError):
    """Something in the browser did not end."""


class WatchedBrowser:
    """Starts a browser, and another one after it was killed."""

    def __init__(self, playwright: Playwright, folder: Path) -> None:
        self._playwright = playwright
        self._pid = folder / "pid"
        # The program's own number is told by nobody else: the shell becomes the browser.
        self._start = folder / "browser"
        pid, program = shlex.quote(str(self._pid)), shlex.quote(PROGRAM)
        self._start.write_text(f'#!/bin/sh\necho $$ > {pid}\nexec {program} "$@"\n')
        self._start.chmod(0o755)
        self._browser: Browser | None = None

    @property
    def browser(self) -> Browser:
        if self._browser is None or not self._browser.is_connected():
            self._browser = self._playwright.chromium.launch(
                executable_path=self._start, args=["--no-sandbox"]
            )
        return self._browser

    @contextmanager
    def within(self, limit_s: float, what: Callable[[], str]) -> Iterator[Browser]:
        """The browser, which is killed if the block takes longer. Raises HungError then."""
        browser, seen = self.browser, list[str]()

        def end() -> None:
            seen.append(f"{what()} took longer than {limit_s:g} s.")
            try:
                seen.append(_evidence())
            finally:
                os.kill(int(self._pid.read_text()), signal.SIGKILL)

        timer = threading.Timer(limit_s, end)
        timer.start()
        try:
            yield browser
        except PlaywrightError as error:
            if seen:
                raise HungError("\n".join(seen)) from error
            raise
        finally:
            timer.cancel()
            timer.join()
            if seen:
                self._browser = None
        if seen:
            raise HungError("\n".join(seen))

    def close(self) -> None:
        if self._browser is not None and self._browser.is_connected():
            with self.within(TEST_WITHIN_S, lambda: "the end of the browser") as browser:
                browser.close()


@contextmanager
def watched_browser() -> Iterator[WatchedBrowser]:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = WatchedBrowser(playwright, Path(folder))
        try:
            yield browser
        finally:
            browser.close()


def _evidence() -> str:
    """What the browser's processes do, and the stacks of all threads here: a console that a test
    serves is among them.
    """
    listed = subprocess.run(
        ["ps", "-eo", "pid,ppid,stat,pcpu,time,args"], capture_output=True, text=True, check=False
    )
    lines = [line[:160] for line in listed.stdout.splitlines()]
    processes = "\n".join(lines[:1] + [each for each in lines if PROCESSES.search(each)])
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        return f"{processes[:MAX_SHOWN]}\n{file.read()[-MAX_SHOWN:]}"
