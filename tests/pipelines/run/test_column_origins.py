"""Columns are followed through the plans that Spark makes of frames and of SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from ottla.pipelines import PipelineError, to_delta, topic
from ottla.pipelines.run.column_origins import position_of

pytestmark = pytest.mark.spark

WHERE: dict[str, Any] = {"bootstrap_servers": "localhost:9092"}
BOTH = ("partition", "offset")


def read(spark: Any, name: str) -> Any:
    """A topic whose values have a field offset of their own."""
    return topic(spark, name, schema="id INT, offset BIGINT, items ARRAY<INT>", **WHERE)


def rows(frame: Any, *more: Any) -> Any:
    return frame.select("value.id", *BOTH, "timestamp", *more)


@pytest.fixture
def one(spark: Any) -> Any:
    frame = read(spark, "one")
    frame.createOrReplaceTempView("one_topic")
    return frame


def test_the_topics_columns_are_found_through_all_that_keeps_them(spark: Any, one: Any) -> None:
    names = spark.createDataFrame([(1, "x")], "id INT, name STRING")
    deduplicated = rows(one).withWatermark("timestamp", "1 hour").dropDuplicates(["id"])
    with_query = spark.sql(
        "WITH r AS (SELECT value.id, partition, offset FROM one_topic), "
        "few AS (SELECT * FROM r WHERE id > 1) SELECT * FROM few"
    )
    for frame in (rows(one), deduplicated, with_query, rows(one).join(names, "id", "left_semi")):
        assert (position_of(frame).columns, position_of(frame).is_shared) == (BOTH, False)
    renamed = one.select("value.*", "partition", F.col("offset").alias("record_offset"))
    assert position_of(renamed).columns == ("partition", "record_offset")
    joined = position_of(rows(one).join(names, "id"))
    assert (joined.columns, joined.is_shared, joined.unordered) == (BOTH, True, "")
    parts = position_of(rows(one.where("value.id > 1")).union(rows(one.where("value.id <= 1"))))
    assert (parts.columns, parts.is_shared, parts.unordered) == (BOTH, True, "")


def test_other_columns_of_these_names_are_not_taken(spark: Any, one: Any) -> None:
    counted = one.groupBy("value.id").agg(F.max("partition").alias("partition"), F.max("offset"))
    for frame in (
        one.select("value.*", "partition"),
        one.selectExpr("value.id", "partition", "offset + 1 AS offset"),
        spark.sql("WITH r AS (SELECT value.*, partition FROM one_topic) SELECT * FROM r"),
        counted,
    ):
        assert (
            "is not the topic's, but a field of the value or computed" in position_of(frame).missing
        )


def test_a_time_of_the_value_is_not_that_of_the_records(one: Any) -> None:
    assert not position_of(rows(one)).has_own_time
    own = one.selectExpr("value.id", *BOTH, "timestamp_seconds(value.id) AS timestamp")
    assert position_of(own).has_own_time


def test_kafkas_own_source_says_its_topics(spark: Any) -> None:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "localhost:9092")
    two = reader.option("subscribe", "a,b").load().selectExpr("key AS id", "topic AS t", *BOTH)
    assert position_of(two).columns == ("t", *BOTH)
    assert position_of(two.drop("t")).columns == ()
    single = reader.option("subscribe", "a").load().selectExpr("key AS id", *BOTH)
    assert position_of(single).columns == BOTH


def test_what_has_no_place_of_its_own_is_refused_at_the_start(
    spark: Any, one: Any, tmp_path: Path
) -> None:
    other = read(spark, "other")
    exploded = one.select(F.explode("value.items").alias("id"), *BOTH, "timestamp")
    later = other.select("value.id", F.col("timestamp").alias("at"))
    cases: tuple[tuple[Any, dict[str, Any], str], ...] = (
        (rows(one).union(rows(other)), {}, "unites the topics 'one', 'other', which have the same"),
        (rows(one).union(rows(other)), {"history": True}, "unites the topics 'one', 'other'"),
        (one.select("value.*", "partition"), {}, "the column offset is not the topic's, but a"),
        (exploded, {}, "explode makes several rows of one record, which have one partition"),
        (rows(one).join(later, "id"), {}, "a join of two streams gives its rows in another order"),
    )
    for frame, how, words in cases:
        with pytest.raises(PipelineError, match=words) as caught:
            to_delta(frame, tmp_path / "t", checkpoint=tmp_path / "c", keys="id", **how)
        assert "\n" not in str(caught.value)


def test_a_union_that_names_its_topics_is_placed_by_them(spark: Any, one: Any) -> None:
    other = rows(read(spark, "other"), F.lit("other").alias("topic"))
    named = rows(one, F.lit("one").alias("topic")).unionByName(other)
    assert position_of(named).columns == ("topic", *BOTH)
