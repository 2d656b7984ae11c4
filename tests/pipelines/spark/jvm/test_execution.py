"""What is read from Spark's own object of a running query, which is replaced here by Python's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F  # noqa: N812

from ottla.pipelines.spark.jvm.execution import EARLIEST, Execution

Offsets = dict[str, dict[str, int]]


class Option:
    """Scala's."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def isDefined(self) -> bool:  # noqa: N802 - Scala's name
        return self.value is not None

    def get(self) -> Any:
        assert self.value is not None
        return self.value


class Sequence:
    """An iterator of Scala's."""

    def __init__(self, *values: Any) -> None:
        self.values = list(values)

    def hasNext(self) -> bool:  # noqa: N802
        return bool(self.values)

    def next(self) -> Any:
        return self.values.pop(0)


def offset(offsets: Offsets) -> Any:
    return SimpleNamespace(json=lambda: json.dumps(offsets))


class Stream:
    """A source of the query: a batch of it ends at `ends`."""

    def __init__(
        self,
        topic: str,
        ends: Offsets,
        *,
        start: Offsets | None = None,
        first: Offsets | None = None,
        latest: Offsets | Exception | None = None,
        name: str = "KafkaV2[Subscribe[{}]]",
    ) -> None:
        self.name = name.format(topic)
        self.ends = ends
        self.start = start
        self.first = first or {}
        self.latest = latest

    def toString(self) -> str:  # noqa: N802
        return self.name

    def initialOffset(self) -> Any:  # noqa: N802
        return offset(self.first)

    def reportLatestOffset(self) -> Any:  # noqa: N802
        if isinstance(self.latest, Exception):
            raise self.latest
        return None if self.latest is None else offset(self.latest)


class Java:
    """Spark's StreamExecution."""

    def __init__(self, *streams: Stream, observed: dict[str, dict[str, Any]] | None = None) -> None:
        self.streams = streams
        self.observed = observed
        self.asked: list[str] = []

    def availableOffsets(self) -> Any:  # noqa: N802
        self.asked.append("availableOffsets")
        pairs = [
            SimpleNamespace(_1=lambda one=each: one, _2=lambda one=each: offset(one.ends))
            for each in self.streams
        ]
        return SimpleNamespace(iterator=lambda: Sequence(*pairs))

    def committedOffsets(self) -> Any:  # noqa: N802
        self.asked.append("committedOffsets")
        return SimpleNamespace(
            get=lambda stream: Option(None if stream.start is None else offset(stream.start))
        )

    def lastExecution(self) -> Any:  # noqa: N802
        if self.observed is None:
            return None
        metrics = {name: row(fields) for name, fields in self.observed.items()}
        found = SimpleNamespace(keysIterator=lambda: Sequence(*metrics), apply=metrics.get)
        return SimpleNamespace(observedMetrics=lambda: found, executedPlan=lambda: "plan")


def row(fields: dict[str, Any]) -> Any:
    values = list(fields.values())
    schema = json.dumps({"type": "struct", "fields": [{"name": name} for name in fields]})
    return SimpleNamespace(
        schema=lambda: SimpleNamespace(json=lambda: schema), get=values.__getitem__
    )


def execution(*streams: Stream, observed: dict[str, dict[str, Any]] | None = None) -> Execution:
    return execution_of(Java(*streams, observed=observed))


def execution_of(java: Java) -> Execution:
    query = SimpleNamespace(streamingQuery=lambda: java)
    running = SimpleNamespace(get={"query-1": query}.get)
    spark: Any = SimpleNamespace(_jsparkSession=SimpleNamespace(streams=lambda: running))
    return Execution(spark, "query-1")


def java_error(kind: str) -> Py4JJavaError:
    """An exception of the JVM, without a JVM."""
    error: Any = Py4JJavaError.__new__(Py4JJavaError)
    names = SimpleNamespace(getName=lambda: kind)
    error.java_exception = SimpleNamespace(getClass=lambda: names)
    found: Py4JJavaError = error
    return found


T = {"t": {"0": 5, "1": 7}}
RATE = Stream("", {"0": {"0": 3}}, name="RateStreamV2[rowsPerSecond=1]")


def test_the_ends_of_all_topics() -> None:
    """A topic that is read twice ends where the reader that is behind ends."""
    found = execution(RATE, Stream("t", T), Stream("u", {"u": {"0": 1}, "t": {"0": 4, "2": 9}}))
    assert found.ends() == {"t": {0: 4, 1: 7, 2: 9}, "u": {0: 1}}


def test_the_range_of_a_topic() -> None:
    streams = RATE, Stream("u", {"u": {"0": 1}}), Stream("t", T, start={"t": {"0": 2, "1": 7}})
    found = execution(*streams)
    assert found.range_of("t") == ({0: 2, 1: 7}, {0: 5, 1: 7})
    assert found.range_of("none") is None


def test_the_ranges_of_a_batch_are_asked_once() -> None:
    java = Java(Stream("t", T, start={"t": {"0": 2, "1": 7}}), Stream("u", {"u": {"0": 1}}))
    found = execution_of(java)
    for _ in range(3):
        assert found.ends() == {"t": {0: 5, 1: 7}, "u": {0: 1}}
        assert found.range_of("t") == ({0: 2, 1: 7}, {0: 5, 1: 7})
        found.more_waits()
    assert java.asked == ["availableOffsets", "committedOffsets"]


def test_the_first_batch_begins_where_the_stream_began() -> None:
    found = execution(Stream("t", T, first={"t": {"0": 1, "1": 0}}))
    assert found.range_of("t") == ({0: 1, 1: 0}, {0: 5, 1: 7})


def test_a_new_partition_is_read_from_its_beginning() -> None:
    found = execution(Stream("t", T, start={"t": {"0": 2}}))
    assert found.range_of("t") == ({0: 2, 1: EARLIEST}, {0: 5, 1: 7})


@pytest.mark.parametrize(
    ("latest", "waits"),
    [
        ({"t": {"0": 5, "1": 7}}, False),
        ({"t": {"0": 5, "1": 8}}, True),
        ({"t": {"0": 5, "1": 7, "2": 1}}, True),
        ({"t": {"0": 5, "1": 7, "2": 0}}, False),
        (None, False),
        (java_error("java.lang.NullPointerException"), False),
    ],
)
def test_records_that_wait_after_the_batch(latest: Any, waits: bool) -> None:
    assert execution(RATE, Stream("t", T, latest=latest)).more_waits() is waits


def test_one_topic_that_waits_is_enough() -> None:
    silent, waiting = Stream("t", T), Stream("u", {"u": {"0": 1}}, latest={"u": {"0": 2}})
    assert execution(silent, waiting).more_waits()


def test_another_failure_of_spark_is_not_hidden() -> None:
    with pytest.raises(Py4JJavaError):
        execution(Stream("t", T, latest=java_error("java.io.IOException"))).more_waits()


def test_what_was_counted() -> None:
    observed = {"ottla.t.1": {"read": 9, "rejected": 2}, "theirs": {"n": 1}}
    assert execution(observed=observed).counted() == observed
    assert execution(observed={}).counted() == {}
    assert execution().counted() == {}, "before the first batch nothing is"


@pytest.mark.spark
def test_what_spark_says_of_a_batch(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    """On a real Spark: two batches of one topic, of which the second waits during the first."""
    name = new_topic(1)
    produce(name, [(None, b"x")] * 5)
    found: dict[int, Any] = {}

    def look(frame: Any, number: int) -> None:
        frame.count()
        (query,) = spark.streams.active
        execution = Execution(spark, query.id)
        counted = execution.counted()["test"]
        found[number] = (
            execution.ends(),
            execution.range_of(name),
            execution.more_waits(),
            (counted["rows"], counted["last"], list(counted["pairs"])),
        )
        execution.forget_counted()
        assert execution.plan().kind

    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": name}
    reader = spark.readStream.format("kafka").options(**options).option("maxOffsetsPerTrigger", 3)
    rows = reader.option("startingOffsets", "earliest").load()
    pair = F.struct("partition", "offset")
    rows = rows.observe(
        "test",
        F.count("offset").alias("rows"),
        F.max(F.col("offset").cast("string")).alias("last"),
        F.collect_set(F.when(F.col("offset") % 3 == 0, pair)).alias("pairs"),
    )
    writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "c"))
    writer.trigger(availableNow=True).foreachBatch(look).start().awaitTermination()

    assert found == {
        0: ({name: {0: 3}}, ({0: 0}, {0: 3}), True, (3, "2", [(0, 0)])),
        1: ({name: {0: 5}}, ({0: 3}, {0: 5}), False, (2, "4", [(0, 3)])),
    }
