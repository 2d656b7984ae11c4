"""Imports the handlers of all requests soon after the start, in a thread.

A handler is imported when its first request comes, so that a broker starts fast. That takes up to
35 ms of the event loop, in which nobody else is answered; a thread takes turns with the loop. It
begins when the first clients have got their answers, and pauses after each.
"""

from __future__ import annotations

import threading
from typing import Final

from ottla.network.handlers import Handlers
from ottla.protocol.versions import (
    APIS,
    BROKER_PROOF,
    ELECTIONS,
    GROUP_HISTORY,
    JOURNEY,
    JOURNEY_GROUPS,
    KEY_OFFSETS,
    METADATA_DELTAS,
    SEGMENTS,
)

AFTER_START_S: Final = 0.5
PAUSE_S: Final = 0.02
KEYS: Final = (
    *APIS,
    JOURNEY,
    METADATA_DELTAS,
    JOURNEY_GROUPS,
    BROKER_PROOF,
    GROUP_HISTORY,
    KEY_OFFSETS,
    SEGMENTS,
    ELECTIONS,
)


class HandlerImports:
    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="handler-imports", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Waits for the import under way."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        if self._stopped.wait(AFTER_START_S):
            return
        for key in KEYS:
            self._handlers.find(key)
            if self._stopped.wait(PAUSE_S):
                return
