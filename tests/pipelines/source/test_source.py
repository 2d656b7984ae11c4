"""A frame's sources are found in its plan, with the numbers that Spark gives them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import topic
from ottla.pipelines.source import source as sources
from ottla.pipelines.source.source import sources_of

pytestmark = pytest.mark.spark

NOWHERE = "localhost:9092"


def test_a_frames_sources_are_found_through_any_transformation(spark: Any) -> None:
    one = topic(spark, "one", bootstrap_servers=NOWHERE, schema="id BIGINT")
    two = topic(spark, "two", bootstrap_servers=NOWHERE, schema="id BIGINT")
    names = spark.createDataFrame([(1, "a")], "id BIGINT, name STRING")
    joined = one.select("value.*").join(names, "id").where("id > 0")

    assert [(number, source.name) for number, source in sources_of(joined)] == [(0, "one")]
    both = joined.select("id").union(two.select("value.id"))
    assert [(number, source.name) for number, source in sources_of(both)] == [
        (0, "one"),
        (1, "two"),
    ]


def test_sources_that_cannot_reject_are_found_as_well(spark: Any) -> None:
    frame = topic(spark, "raw", bootstrap_servers=NOWHERE, schema="binary", key_schema="binary")
    assert [(number, source.can_reject) for number, source in sources_of(frame)] == [(0, False)]


def test_the_numbers_are_those_of_the_checkpoints_folders(
    spark: Any, bootstrap: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    """Spark writes each source's first offsets in `sources/<number>/0`, naming the topic."""
    names = [new_topic() for _ in range(3)]
    a, b, c = (
        topic(spark, name, bootstrap_servers=bootstrap).select("value", "timestamp")
        for name in names
    )
    rate = spark.readStream.format("rate").load().selectExpr("string(value)", "timestamp")
    frame = a.union(rate).union(b.union(a)).union(c)
    found = sources_of(frame)
    query = (
        frame.writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    for number, source in found:
        written = (tmp_path / "checkpoint" / "sources" / str(number) / "0").read_text()
        assert list(json.loads(written.splitlines()[-1])) == [source.name]
    assert {source.name for _, source in found} == set(names)


def test_a_process_keeps_the_newest_sources(monkeypatch: pytest.MonkeyPatch, spark: Any) -> None:
    monkeypatch.setattr(sources, "MAX_SOURCES", 2)
    monkeypatch.setattr(sources, "SOURCES", {})
    frames = [topic(spark, name, bootstrap_servers=NOWHERE) for name in ("a", "b", "a", "c")]
    assert [len(sources_of(frame)) for frame in frames] == [1, 0, 1, 1]
