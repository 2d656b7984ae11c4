"""The last lines of a client's own log, for a failure: what it waits for, nobody else knows."""

from __future__ import annotations

import logging
from collections import deque
from typing import Final

MAX_LINES: Final = 80


class ClientLog(logging.Handler):
    """Keeps the last lines. `logger` is for a client of librdkafka."""

    def __init__(self, client: str) -> None:
        super().__init__()
        self._client = client
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        # Not by name: each run has clients of the same names.
        self.logger = logging.Logger(client, logging.DEBUG)
        self.logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))

    def last_lines(self) -> list[str]:
        """Oldest first, each with the client's name."""
        return [f"{self._client}: {line}" for line in self._lines]
