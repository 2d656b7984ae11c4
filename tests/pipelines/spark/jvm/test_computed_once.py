"""Which rows Spark computes once."""

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.pipelines.spark.jvm.computed_once import computes_once


@pytest.mark.spark
def test_rows_behind_a_shuffle_or_a_cache_may_be_computed_again(spark: Any) -> None:
    rows = spark.range(10).selectExpr("CAST(id AS STRING) AS value")
    assert computes_once(rows.where("value > '3'"))
    assert not computes_once(rows.groupBy("value").count())
    assert not computes_once(rows.repartition(2))
    pairs = spark.sparkContext.parallelize([("a", 1), ("b", 2)], 2)
    assert computes_once(spark.createDataFrame(pairs, "value STRING, number INT"))
    grouped = pairs.reduceByKey(lambda first, second: first + second)
    assert not computes_once(spark.createDataFrame(grouped, "value STRING, number INT"))
    cached = rows.cache()
    assert not computes_once(cached)
    cached.unpersist()


@pytest.mark.parametrize("master", ["local[2,3]", "local-cluster[1,1,1024]", "yarn"])
def test_only_a_local_spark_that_tries_a_task_once_is_taken(master: str) -> None:
    session = SimpleNamespace(sparkContext=SimpleNamespace(master=master))
    frame: Any = SimpleNamespace(sparkSession=session)
    assert not computes_once(frame)
