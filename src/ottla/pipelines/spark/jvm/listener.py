"""A listener of queries that takes each progress as JSON, in one call of the JVM.

PySpark reads an event into objects before it calls a listener: some 275 calls for a batch's
progress, of which each map that it reads ends with an exception. That took about 0.1 s of CPU a
batch and listener. It needs PySpark for its base class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming import StreamingQueryListener
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
)

from ottla.pipelines.spark.jvm.attributes import gateway

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import QueryProgressEvent


class JsonListener(StreamingQueryListener):  # type: ignore[misc]
    """A listener for `spark.streams.addListener`; what it does not override does nothing."""

    def progressed(self, text: str) -> None:
        """Take a progress: the JSON of Spark's StreamingQueryProgress."""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's names
        """Do nothing."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Take a progress that PySpark has read."""
        self.progressed(event.progress.json)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Do nothing."""

    @property
    def _jlistener(self) -> Any:
        """What PySpark gives to the JVM, each time the same one."""
        if "_calls" not in vars(self):
            wrapper = gateway().jvm.PythonStreamingQueryListenerWrapper
            self._calls = wrapper(_Calls(self))
        return self._calls


class _Calls:
    """What the JVM calls, with its own events."""

    def __init__(self, listener: JsonListener) -> None:
        self._listener = listener

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        self._listener.onQueryStarted(QueryStartedEvent.fromJObject(event))

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self._listener.progressed(str(event.progress().json()))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        self._listener.onQueryIdle(QueryIdleEvent.fromJObject(event))

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        self._listener.onQueryTerminated(QueryTerminatedEvent.fromJObject(event))

    class Java:
        """What py4j asks of a class that the JVM calls."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
