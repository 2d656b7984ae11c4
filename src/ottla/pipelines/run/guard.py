"""The function that Spark calls for each batch; it keeps the exception of a batch that fails.

Spark keeps only a text of the exception, and decides by that text whether the query failed or was
stopped inside the batch. py4j also logs the exception with its traceback, on stderr where logging
is not configured; that record is dropped, because the exception itself is reported.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.pipelines.spark.jvm.causes import causes_of, is_interruption

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# The text by which Spark recognizes that its own stop interrupted Python's code
# (StreamExecution.isInterruptionException). It searches the text with a regular expression that
# overflows the stack on a long one.
_INTERRUPTED: Final = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling the batch: "
    "java.lang.InterruptedException"
)


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
            text = _INTERRUPTED if is_interruption(causes_of(error)) else type(error).__name__
            raise BatchFailedError(f"batch {batch}: {text}") from None
        self.frame = None
        self.batches_done += 1

    def clear(self) -> None:
        """Forget the last exception: the query starts again."""
        self.error, self.frame = None, None


def _is_not_a_failed_batch(record: logging.LogRecord) -> bool:
    return not (record.exc_info and record.exc_info[0] is BatchFailedError)
