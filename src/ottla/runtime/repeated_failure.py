"""Logs a failure that repeats, for example while a disk is full: the first at once, then few."""

from __future__ import annotations

import logging
from typing import Final

from ottla.runtime.clock import Clock

LOG_AGAIN_MS: Final = 30_000
"""Clients repeat refused requests many times a second."""


class RepeatedFailure:
    """One kind of failure, wherever it happens: at most one line in LOG_AGAIN_MS."""

    def __init__(self, logger: logging.Logger, level: int, clock: Clock) -> None:
        self._logger = logger
        self._level = level
        self._clock = clock
        self._logged_ms: int | None = None
        self._omitted = 0
        """How many were not logged since."""

    def log(self, message: str, *values: object) -> None:
        """It happened; `message` is a format for `values`, as in `logging`."""
        now_ms = self._clock.monotonic_ms()
        if self._logged_ms is not None and now_ms < self._logged_ms + LOG_AGAIN_MS:
            self._omitted += 1
            return
        if self._omitted:
            message += " (%d more since the last such line)"
            values = (*values, self._omitted)
        self._logged_ms, self._omitted = now_ms, 0
        self._logger.log(self._level, message, *values)
