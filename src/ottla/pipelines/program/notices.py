"""What the pipelines log, as notices beside their state."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator


class NoticeHandler(logging.Handler):
    """Collects warnings in a list, from which the view shows them."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())


@contextlib.contextmanager
def collect_log(lines: list[str]) -> Iterator[None]:
    """Collect what Ottla's pipelines log in the block."""
    logger = logging.getLogger("ottla.pipelines")
    handler, before = NoticeHandler(lines), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = before
