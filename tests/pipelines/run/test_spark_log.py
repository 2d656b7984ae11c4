"""Spark's log about failures goes to a file, in a session that Ottla started."""

import os
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.run import spark_log
from ottla.pipelines.run.spark_log import TO_STDERR, route_failures
from ottla.pipelines.spark.start import STARTED_BY_OTTLA

pytestmark = pytest.mark.spark


def log_error(spark: Any, name: str, text: str) -> None:
    spark._jvm.org.apache.logging.log4j.LogManager.getLogger(name).error(text)


def test_what_spark_logs_about_failures_is_in_a_file(spark: Any, state_folder: Path) -> None:
    route_failures(spark, os.environ)  # a query may have done so before
    assert route_failures(spark, os.environ) is None

    log_error(spark, "org.apache.spark.scheduler.TaskSetManager", "task one failed")
    log_error(spark, "org.apache.kafka.clients.NetworkClient", "no broker")
    log_error(spark, "com.example.Job", "words of the user's own code")

    text = (state_folder / "logs" / f"spark-{os.getpid()}.log").read_text()
    assert "ERROR org.apache.spark.scheduler.TaskSetManager: task one failed" in text
    assert "ERROR org.apache.kafka.clients.NetworkClient: no broker" in text
    # Only Spark's own loggers are routed. That the screen stays empty is shown by
    # test_query.py, in a process of its own: the JVM's screen is not this process's.
    assert "words of the user's own code" not in text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (STARTED_BY_OTTLA, "false"),  # a session that others started: its log is theirs
        (TO_STDERR, "true"),  # a command that has a log of its own, which gets the failures too
    ],
)
def test_a_log_that_is_not_the_pipelines_own_is_left_alone(
    spark: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    def not_asked(_: Any) -> None:
        raise AssertionError("log4j was asked")

    monkeypatch.setattr(spark_log, "Log4j", not_asked)
    before = spark.conf.get(name, "")
    spark.conf.set(name, value)
    try:
        assert route_failures(spark, os.environ) is None
    finally:
        spark.conf.set(name, before)
