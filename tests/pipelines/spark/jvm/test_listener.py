"""A listener that takes progress as JSON."""

import json
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.listener import QueryProgressEvent, QueryStartedEvent

from ottla.pipelines.spark.jvm.events import wait_for_events
from ottla.pipelines.spark.jvm.listener import JsonListener

pytestmark = pytest.mark.spark

WITHIN_MS = 30_000


class Seen(JsonListener):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.calls: list[str] = []

    def progressed(self, text: str) -> None:
        self.texts.append(text)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        self.calls.append(f"started {event.id}")

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        self.calls.append(f"terminated {event.id}")


def run_a_query(spark: Any) -> Any:
    rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    rows = rows.observe("seen", F.count(F.lit(1)).alias("rows"), F.lit(None).alias("nothing"))
    query = rows.writeStream.format("noop").trigger(availableNow=True).start()
    query.awaitTermination()
    wait_for_events(spark, WITHIN_MS)
    return query


def test_progress_comes_as_json_and_is_not_read_by_pyspark(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_event: Any) -> None:
        raise AssertionError("275 calls of the JVM")

    monkeypatch.setattr(QueryProgressEvent, "fromJObject", read)
    listener = Seen()
    spark.streams.addListener(listener)
    try:
        query = run_a_query(spark)
    finally:
        spark.streams.removeListener(listener)
    assert listener.calls == [f"started {query.id}", f"terminated {query.id}"]
    progress = [json.loads(text) for text in listener.texts]
    assert {one["runId"] for one in progress} == {query.runId}
    assert all(set(one["observedMetrics"]["seen"]) >= {"rows"} for one in progress)


def test_a_removed_listener_is_not_called(spark: Any) -> None:
    listener = Seen()
    spark.streams.addListener(listener)
    spark.streams.removeListener(listener)
    run_a_query(spark)
    assert listener.calls == []
    assert listener.texts == []
