"""The private attributes of PySpark that lead to its JVM: they are read here alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

LEADING: Final = ("_jvm", "_jsparkSession")
"""The attributes of a session that lead to its JVM."""


def java_session(spark: SparkSession) -> Any:
    """Return the JVM's SparkSession."""
    return spark._jsparkSession


def java_frame(frame: DataFrame) -> Any:
    """Return the JVM's DataFrame."""
    return frame._jdf


def java_query(query: StreamingQuery) -> Any:
    """Return the JVM's StreamingQuery."""
    return query._jsq


def java_class(spark: SparkSession | SparkContext, name: str) -> Any:
    """Return a class of the JVM by its full name: one call, where `jvm.a.b.C` takes three."""
    return getattr(spark._jvm, name)


def gateway() -> Any:
    """Return py4j's connection to the JVM, None before it has started."""
    from pyspark import SparkContext

    return SparkContext._gateway


def is_instance(java: Any, name: str) -> bool:
    """Tell whether an object of the JVM is of a class, by its full name."""
    from py4j.java_gateway import is_instance_of

    return bool(is_instance_of(gateway(), java, name))
