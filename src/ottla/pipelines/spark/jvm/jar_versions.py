"""The versions of the jars in the JVM, as they say themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.pipelines.spark.jvm.attributes import gateway, java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def delta_version(spark: SparkSession) -> str | None:
    """Return Delta's version, None for an old Delta that does not say it."""
    from py4j.protocol import Py4JError

    try:
        return str(getattr(java_class(spark, "io.delta.package$"), "MODULE$").VERSION())
    except Py4JError:
        return None


def hadoop_version() -> str | None:
    """Return the version of Spark's Hadoop, None where Spark's process is gone."""
    from py4j.protocol import Py4JError

    try:
        return str(getattr(gateway().jvm, "org.apache.hadoop.util.VersionInfo").getVersion())
    except (Py4JError, OSError, AttributeError):
        return None
