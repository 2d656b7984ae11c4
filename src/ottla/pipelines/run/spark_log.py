"""What Spark's JVM logs about failures: to a file instead of the screen.

Spark logs one failure up to six times, each with its stack, and Kafka's client logs every
attempt. The pipeline reports a failure itself, in one line. So the loggers that report failures
write to `<state folder>/logs/spark-<pid>.log`: at most MAX_LOG_FILES files of LOG_SIZE, for the
newest MAX_PROCESSES processes. Only in a session that Ottla started, and only where log4j has no
configuration of the user's. The command line sends all of Spark's log to one file itself; it
says so with the setting TO_STDERR.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.pipelines.spark.jvm.log4j import Log4j
from ottla.pipelines.spark.start import STARTED_BY_OTTLA
from ottla.pipelines.state_folder import LOGS, remove_oldest, state_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG_SIZE: Final = "10MB"
MAX_LOG_FILES: Final = 2
MAX_PROCESSES: Final = 10

TO_STDERR: Final = "spark.ottla.failures.to.stderr"

_APPENDER: Final = "ottla"
# Where log4j's configuration lies when the user gave none.
_DEFAULT: Final = "org/apache/spark/log4j2"
_LOGGERS: Final = (
    "io.delta",
    "org.apache.hadoop",
    "org.apache.kafka",
    "org.apache.parquet",
    "org.apache.spark.api.python",
    "org.apache.spark.executor",
    "org.apache.spark.scheduler",
    "org.apache.spark.sql",
    "org.apache.spark.storage",
    "org.apache.spark.util",
)
# PySpark's own loggers repeat a failed row's message as JSON on stderr.
_OF_PYTHON: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


def route_failures(spark: SparkSession, environment: Mapping[str, str]) -> Path | None:
    """Send what Spark logs about failures to a file; return it, None where nothing was changed."""
    conf = spark.conf
    if conf.get(STARTED_BY_OTTLA, "") != "true" or conf.get(TO_STDERR, "") == "true":
        return None
    log4j = Log4j(spark)
    if log4j.has(_APPENDER):
        return None
    folder = state_folder(environment, LOGS) if _DEFAULT in log4j.source else None
    if folder is None:
        return None
    file = folder / f"spark-{os.getpid()}.log"
    remove_oldest(folder, "spark-*.log", MAX_PROCESSES - 1)
    log4j.write_to(file, _APPENDER, _LOGGERS, size=LOG_SIZE, max_files=MAX_LOG_FILES)
    silence_pyspark()
    return file


def silence_pyspark() -> None:
    """Keep PySpark from printing a failure of a query, which is reported in one line."""
    from pyspark.logger import PySparkLogger

    for name in _OF_PYTHON:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
