"""Spark's events for its listeners."""

from typing import Any

import pytest
from pyspark.sql.streaming import StreamingQueryListener

from ottla.pipelines.spark.jvm.events import wait_for_events

pytestmark = pytest.mark.spark

WITHIN_MS = 30_000


class Ends(StreamingQueryListener):
    def __init__(self) -> None:
        self.ended: list[str] = []

    def onQueryStarted(self, event: Any) -> None: ...  # noqa: N802 - Spark's names

    def onQueryProgress(self, event: Any) -> None: ...  # noqa: N802

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        self.ended.append(str(event.id))


def test_events_are_delivered_after_the_wait(spark: Any) -> None:
    listener = Ends()
    spark.streams.addListener(listener)
    try:
        query = spark.readStream.format("rate").load().writeStream.format("noop").start()
        query.stop()
        wait_for_events(spark, WITHIN_MS)
        assert listener.ended == [query.id]
    finally:
        spark.streams.removeListener(listener)


def test_a_stopped_session_has_none(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark.sparkContext, "_jsc", None)
    with pytest.raises(AttributeError):
        wait_for_events(spark, WITHIN_MS)
