"""The Spark of this process, and that of a process that spark-submit started."""

from typing import Any

import pytest

from ottla.pipelines.spark.jvm import context

pytestmark = pytest.mark.spark


def test_the_session_that_runs(spark: Any) -> None:
    assert context.jvm_runs()
    assert context.running_session() is spark
    assert not context.is_stopped(spark)


def test_a_session_that_was_stopped(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `SparkContext.stop` leaves it: this process needs its session for other tests."""
    from pyspark import SparkContext

    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(spark.sparkContext, "_jsc", None)
    assert context.is_stopped(spark)
    assert context.running_session() is None
    assert context.jvm_runs(), "PySpark keeps the JVM"


def test_where_spark_is_and_what_it_was_started_with(spark: Any) -> None:
    assert list((context.spark_home() / "jars").glob("spark-core_*.jar"))
    assert str(context.spark_home() / "jars") in context.class_path(spark)
    assert isinstance(context.submitted_settings(), dict)  # test_start.py runs spark-submit
