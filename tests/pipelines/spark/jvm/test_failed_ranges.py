"""The range of records that a failed task was reading, through Spark's own lineage."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from ottla.pipelines import PipelineError, to_delta, topic

pytestmark = pytest.mark.spark

ROWS = 5


@pytest.fixture
def frame(
    spark: Any, bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None]
) -> Any:
    """A topic of three partitions with five rows each: w0, w3, w6 ... are in partition 0."""
    name = new_topic(3)
    for number in range(3 * ROWS):
        value = json.dumps({"id": number, "word": f"w{number}"})
        produce(name, [(None, value)], partition=number % 3)
    return topic(spark, name, bootstrap_servers=bootstrap, schema="id BIGINT, word STRING")


def no_sevens(word: str) -> str:
    if word == "w7":
        raise ValueError("no sevens here")
    return word


@pytest.mark.parametrize(
    ("query", "read"),
    [
        (lambda frame, word: frame.select(word), "partition 1, offsets 0 to 4"),
        pytest.param(
            lambda frame, word: frame.select("value.word").union(frame.select(word)),
            "partition 1, offsets 0 to 4",
            marks=pytest.mark.full,
        ),
        (lambda frame, word: frame.select(word).repartition(2), "partition 1, offsets 0 to 4"),
        pytest.param(
            lambda frame, word: frame.select(word).coalesce(1),
            "partition 0, offsets 0 to 4",
            marks=pytest.mark.full,
        ),
        (lambda frame, word: frame.repartition(2).select(word), None),
    ],
    ids=["plain", "union", "before a shuffle", "several at once", "after a shuffle"],
)
def test_a_failure_names_topic_partition_and_offsets(
    frame: Any, tmp_path: Path, query: Callable[[Any, Any], Any], read: str | None
) -> None:
    word = F.udf("string")(no_sevens)("value.word").alias("word")
    place: dict[str, Any] = {
        "checkpoint": tmp_path / "checkpoint",
        "trigger": {"availableNow": True},
    }
    with pytest.raises(PipelineError, match="no sevens here") as caught:
        to_delta(query(frame, word), tmp_path / "table", **place).awaitTermination()

    said = str(caught.value)
    if read is None:
        # The task read the output of another one, which may come from any partition.
        assert " while it read " not in said
    else:
        before, _, after = said.partition(" while it read ")
        assert "in no_sevens)" in before
        assert read in after.partition(". Handle such a value")[0]
    assert "\n" not in said
