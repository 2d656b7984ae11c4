"""A fatal error in the thread of a query: Java would print its stack on the screen.

Spark notes such an error (OutOfMemoryError, for example) as the failure of the query, and throws
it again to end the thread. The failure is reported in one line, so the second copy is dropped.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.spark.jvm.attributes import java_query

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

log: Final = logging.getLogger("ottla.pipelines")


class _Handler:
    """Java's Thread.UncaughtExceptionHandler."""

    def uncaughtException(self, thread: Any, error: Any) -> None:  # noqa: N802 - Java's name
        """Called by Java in the thread that ends."""
        log.debug("The thread of a query ended with %s", error.getClass().getName())

    class Java:
        implements: Final = ["java.lang.Thread$UncaughtExceptionHandler"]


def keep_off_screen(query: StreamingQuery) -> None:
    """Have Java print nothing when the thread of this query ends with a fatal error."""
    java_query(query).streamingQuery().queryExecutionThread().setUncaughtExceptionHandler(
        _Handler()
    )
