"""The Spark of this process: where it is installed, and whether its JVM and a session run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ottla.pipelines.spark.jvm.attributes import gateway, java_class, java_context

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_home() -> Path:
    """Return Spark's folder, by SPARK_HOME or where pip installed PySpark."""
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home())


def running_session() -> SparkSession | None:
    """Return the session that runs; of a context without one, as some notebooks give, a new one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    if context is None:
        return None
    return SparkSession.getActiveSession() or SparkSession(context)


def jvm_runs() -> bool:
    """Tell whether the JVM of a former session still runs; it keeps the jars it started with."""
    return gateway() is not None


def submitted_settings() -> dict[str, str]:
    """Return the settings of the JVM that spark-submit or AWS Glue started."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # SparkConf asks the JVM, once there is a connection
    return dict(SparkConf().getAll())


def is_stopped(spark: SparkSession) -> bool:
    """Tell whether the program stopped its session."""
    return java_context(spark.sparkContext) is None


def class_path(spark: SparkSession) -> str:
    """Return the class path that the JVM was started with."""
    return str(java_class(spark, "java.lang.System").getProperty("java.class.path"))
