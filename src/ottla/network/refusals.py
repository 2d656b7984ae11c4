"""Says why clients are refused: each address and reason once in a while, however often it tries."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

SAY_AGAIN_MS: Final = 30_000
MAX_REMEMBERED: Final = 1000
"""Addresses and reasons; beyond them, all are forgotten."""
MAX_REASON_CHARACTERS: Final = 300
"""A reason may show what the client sent, before anybody knows who it is."""


class Refusals:
    """Of one listener."""

    def __init__(
        self, logger: logging.Logger, listener: str, monotonic_ms: Callable[[], int]
    ) -> None:
        self.count = 0
        self._logger = logger
        self._listener = listener
        self._monotonic_ms = monotonic_ms
        self._logged_ms: dict[tuple[str, str], int] = {}
        """When, by address and reason."""

    def say(self, host: str, reason: str) -> None:
        """One line; none if the same was said in the last SAY_AGAIN_MS."""
        self.count += 1
        reason = reason[:MAX_REASON_CHARACTERS]
        now_ms = self._monotonic_ms()
        last_ms = self._logged_ms.get((host, reason))
        if last_ms is not None and now_ms < last_ms + SAY_AGAIN_MS:
            return
        if len(self._logged_ms) >= MAX_REMEMBERED:
            self._logged_ms.clear()
        self._logged_ms[host, reason] = now_ms
        self._logger.warning("refused %s on listener %s: %s", host, self._listener, reason)
