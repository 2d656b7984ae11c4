"""Spark's listener that reports progress; in its own file, because its base class needs PySpark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ottla.pipelines.spark.jvm.listener import JsonListener

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )


class Events(Protocol):
    """What is called for each event."""

    def started(self, query_id: str, name: str | None) -> None: ...

    def progressed(self, text: str) -> None: ...

    def idle(self, query_id: str) -> None: ...

    def terminated(self, query_id: str, exception: str | None) -> None: ...


class ProgressListener(JsonListener):
    """Passes each event to the reporter."""

    def __init__(self, reporter: Events) -> None:
        super().__init__()
        self.reporter = reporter

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        self.reporter.started(str(event.id), event.name)

    def progressed(self, text: str) -> None:
        """Pass on a progress as JSON."""
        self.reporter.progressed(text)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        self.reporter.idle(str(event.id))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        self.reporter.terminated(str(event.id), event.exception)
