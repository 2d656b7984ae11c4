"""Pages whose modules are imported when somebody first asks for them, or a moment after the start:
the first page does not wait for the others, whose imports take longer than all else that it needs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from starlette.responses import Response

    from ottla.console.visit import Page, Visit

ROOM: Final = "ottla.console.pages"
AFTER_START_S: Final = 1.0
PAUSE_S: Final = 0.02
"""Between two modules, for who asks meanwhile."""


class Later:
    """A page's function, of this name in this module of `console.pages`. It runs in a thread, and
    so does the import.
    """

    def __init__(self, module: str, name: str) -> None:
        self.module, self._name = f"{ROOM}.{module}", name

    def loaded(self) -> Page:
        page: Page = loaded(self.module, self._name)
        return page

    def __call__(self, visit: Visit) -> Response:
        return self.loaded()(visit)


def loaded(module: str, name: str) -> Any:
    """What a module has under this name."""
    return getattr(import_module(module), name)


def import_soon(modules: Iterable[str]) -> threading.Thread:
    """In a thread, which ends with the process at the latest."""

    def run() -> None:
        time.sleep(AFTER_START_S)
        for each in modules:
            import_module(each)
            time.sleep(PAUSE_S)

    thread = threading.Thread(target=run, name="console-imports", daemon=True)
    thread.start()
    return thread
