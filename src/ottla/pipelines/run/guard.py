"""The function that Spark calls for each batch, with the exception of the batch that failed.

Spark would keep only a text of the exception. py4j logs it with its traceback as well, on stderr
where nobody set up logging; that record is dropped, for the exception itself is reported.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class BatchFailedError(Exception):
    """What Spark is given in place of the batch's own exception."""


class BatchGuard:
    """Writes batches with `write(frame, batch)`; keeps the last exception, counts the batches."""

    def __init__(self, write: Callable[[DataFrame, int], None]) -> None:
        self._write = write
        self.batches_done = 0
        self.batch: int | None = None
        self.frame: DataFrame | None = None
        self.error: Exception | None = None
        logging.getLogger("py4j.clientserver").addFilter(_is_not_a_failed_batch)

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write a batch. Raises BatchFailedError in place of any exception, which is kept."""
        self.batch, self.frame = batch, frame
        try:
            self._write(frame, batch)
        except Exception as error:  # noqa: BLE001 - kept, reported by the supervisor
            self.error = error
            raise BatchFailedError(f"batch {batch}: {type(error).__name__}") from None
        self.frame = None
        self.batches_done += 1

    def clear(self) -> None:
        """Forget the last exception: the query starts again."""
        self.error, self.frame = None, None


def _is_not_a_failed_batch(record: logging.LogRecord) -> bool:
    return not (record.exc_info and record.exc_info[0] is BatchFailedError)
