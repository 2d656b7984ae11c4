"""A real browser, driven over its DevTools protocol."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

WAIT_S = 30
NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    """The program, if the machine has one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Tab:
    """One page."""

    def __init__(self, websocket: ClientConnection) -> None:
        self._websocket = websocket
        self._last_id = 0

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._last_id += 1
        command = {"id": self._last_id, "method": method, "params": parameters}
        self._websocket.send(json.dumps(command))
        while True:
            found: dict[str, Any] = json.loads(self._websocket.recv(WAIT_S))
            if found.get("id") == self._last_id:
                assert "error" not in found, found
                result: dict[str, Any] = found["result"]
                return result

    def value(self, expression: str) -> Any:
        """What an expression of JavaScript is."""
        found = self.command("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"].get("value")

    def until(self, expression: str, wanted: Any) -> None:
        deadline = time.monotonic() + WAIT_S
        while (found := self.value(expression)) != wanted:
            assert time.monotonic() < deadline, (expression, found)
            time.sleep(0.05)


@contextmanager
def tab(program: str, folder: Path, url: str) -> Iterator[Tab]:
    """A page at `url`, in a browser without a window."""
    errors = folder / "chromium.txt"
    with errors.open("wb") as said:
        process = subprocess.Popen(
            [
                program, "--headless=new", "--no-sandbox", "--disable-gpu",
                "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
                "--remote-debugging-port=0", f"--user-data-dir={folder / 'profile'}", "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=said,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + WAIT_S
        while not (found := re.search(r"ws://127\.0\.0\.1:\d+/\S+", errors.read_text())):
            assert process.poll() is None, errors.read_text()
            assert time.monotonic() < deadline, errors.read_text()
            time.sleep(0.05)
        with connect(found[0], max_size=None) as browser:
            made = Tab(browser).command("Target.createTarget", url=url)["targetId"]
        page = re.sub(r"/devtools/.*", f"/devtools/page/{made}", found[0])
        with connect(page, max_size=None) as websocket:
            yield Tab(websocket)
    finally:
        process.terminate()
        try:
            process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
