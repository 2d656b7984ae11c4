"""A new query starts at the offsets that are written into its checkpoint."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import topic
from ottla.pipelines.source.source import sources_of
from ottla.pipelines.spark.jvm.initial_offsets import write_initial_offsets


@pytest.mark.spark
def test_a_query_starts_where_its_checkpoint_says(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    """Two sources, each with its own offsets, written twice as after a crash before the start."""
    one, two = new_topic(), new_topic()
    for name in (one, two):
        for partition in (0, 1):
            produce(name, [(None, b"x")] * 10, partition=partition)
    frames = [
        topic(spark, name, bootstrap_servers=bootstrap).selectExpr(
            f"'{name}' AS topic", "partition", "offset"
        )
        for name in (one, two)
    ]
    frame = frames[0].union(frames[1])
    checkpoint = tmp_path / "checkpoint"
    starts = {one: {0: 9, 1: 10}, two: {0: 7, 1: 8}}
    for number, found in sources_of(frame):
        for offsets in ({0: 1, 1: 1}, starts[found.name]):
            write_initial_offsets(spark, str(checkpoint), number, {found.name: offsets})
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(checkpoint))
        .option("path", str(tmp_path / "out"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted((row["topic"], row["partition"], row["offset"]) for row in rows) == sorted(
        [(one, 0, 9), (two, 0, 7), (two, 0, 8), (two, 0, 9), (two, 1, 8), (two, 1, 9)]
    )
