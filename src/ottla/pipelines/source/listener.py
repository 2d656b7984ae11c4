"""Spark's listener for `watch`; a file of its own because its base class needs PySpark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming import StreamingQueryListener

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )


class RejectsListener(StreamingQueryListener):  # type: ignore[misc]
    """Passes on the counts of each progress: query id, run id, name and observed metrics."""

    def __init__(self, progressed: Callable[[str, str, str | None, Any], None]) -> None:
        super().__init__()
        self._progressed = progressed

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing was read yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Look at the counts of a batch."""
        progress = event.progress
        self._progressed(
            str(progress.id), str(progress.runId), progress.name, progress.observedMetrics
        )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing new was read."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """The counts were looked at already."""
