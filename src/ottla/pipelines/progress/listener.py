"""Spark's listener for `report_progress`; apart, for its base class needs PySpark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.streaming import StreamingQueryListener

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

    from ottla.pipelines.progress.report import Reporter


class ProgressListener(StreamingQueryListener):  # type: ignore[misc]
    """Hands each progress to the reporter."""

    def __init__(self, reporter: Reporter) -> None:
        super().__init__()
        self.reporter = reporter

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Report what a former run of the query left unsaid."""
        self.reporter.started(str(event.id), event.name)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Report a batch that is done."""
        self.reporter.progressed(event.progress.json)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing new was delivered."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """What was delivered is reported already."""
