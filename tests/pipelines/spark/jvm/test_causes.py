"""Chains of Python's exceptions and of the JVM's as data."""

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from ottla.pipelines.failures.cause import Cause
from ottla.pipelines.spark.jvm.attributes import java_class
from ottla.pipelines.spark.jvm.causes import (
    MAX_CAUSES,
    causes_of,
    failure_of_query,
    is_interruption,
    is_of_jvm,
    trace_of,
)


def raised(error: BaseException, cause: BaseException | None) -> BaseException:
    try:
        raise error from cause
    except type(error) as caught:
        return caught


def test_a_chain_is_read_from_the_outside_in() -> None:
    error = raised(ValueError("outer"), raised(KeyError("inner"), None))

    assert causes_of(error) == [Cause("ValueError", "outer"), Cause("KeyError", "'inner'")]
    assert "ValueError: outer" in trace_of(error)
    assert "KeyError: 'inner'" in trace_of(error)


def test_a_long_chain_is_cut() -> None:
    error: BaseException | None = None
    for number in range(MAX_CAUSES + 5):
        error = raised(ValueError(number), error)

    assert error is not None
    assert len(causes_of(error)) == MAX_CAUSES


def test_short_names() -> None:
    assert Cause("org.apache.Some$Inner").short_kind == "Inner"
    assert Cause("KeyError").short_kind == "KeyError"


def test_a_stop_is_no_failure() -> None:
    assert is_interruption([Cause("SparkException"), Cause("java.lang.InterruptedException")])
    assert is_interruption([Cause("SparkException", "", "SPARK_JOB_CANCELLED")])
    assert not is_interruption([Cause("java.lang.IllegalStateException")])
    assert not is_interruption([])


@pytest.mark.spark
def test_a_failure_of_spark_has_its_condition(spark: Any) -> None:
    with pytest.raises(PySparkException) as caught:
        spark.sql("SELECT raise_error('no more')").collect()

    assert is_of_jvm(caught.value)
    conditions = [cause.condition for cause in causes_of(caught.value)]
    assert "USER_RAISED_EXCEPTION" in conditions
    assert "\tat org.apache.spark." in trace_of(caught.value)


@pytest.mark.spark
def test_a_failure_of_a_database_has_its_code(spark: Any) -> None:
    with pytest.raises(Py4JJavaError) as caught:
        java_class(spark, "java.sql.DriverManager").getConnection("jdbc:nothing")

    (cause,) = causes_of(caught.value)
    assert (cause.kind, cause.condition) == ("java.sql.SQLException", "SQLSTATE 08001")


@pytest.mark.spark
def test_a_query_that_failed(spark: Any, tmp_path: Path) -> None:
    rows = spark.readStream.format("rate").load().selectExpr("raise_error('no more')")
    writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "c"))
    running = spark.readStream.format("rate").load().writeStream.format("noop").start()
    assert failure_of_query(running) is None
    running.stop()

    query = writer.format("noop").start()
    with pytest.raises(PySparkException):
        query.awaitTermination()

    found = failure_of_query(query)
    assert found is not None
    assert "USER_RAISED_EXCEPTION" in [cause.condition for cause in found[0]]
    assert "\tat org.apache.spark." in found[1]
