"""Spark's log about failures goes to a file, in a session that Ottla started."""

import os
from pathlib import Path
from typing import Any

import pytest

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


def test_the_log_of_a_session_that_others_started_is_left_alone(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = spark.sparkContext._conf
    assert conf.get(STARTED_BY_OTTLA) == "true"
    monkeypatch.setattr(type(conf), "get", lambda self, name, default=None: default)

    assert route_failures(spark, os.environ) is None


def test_a_command_that_has_a_log_of_its_own_gets_the_failures_too(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_to = {STARTED_BY_OTTLA: "true", TO_STDERR: "true"}
    monkeypatch.setattr(
        type(spark.sparkContext._conf), "get", lambda self, name, default=None: set_to.get(name)
    )

    assert route_failures(spark, os.environ) is None
