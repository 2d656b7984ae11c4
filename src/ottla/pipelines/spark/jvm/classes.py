"""Which classes this Spark has: its modules are optional, and a class may move with a version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.pipelines.spark.jvm.attributes import java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def why_not_loaded(spark: SparkSession, name: str) -> str | None:
    """Return what Java says where a class does not load, None where it does."""
    from py4j.protocol import Py4JJavaError

    try:
        _load(spark, name, initialize=True)
    except Py4JJavaError as error:
        return str(error)
    return None


def first_class(spark: SparkSession, names: Sequence[str]) -> str | None:
    """Return the first of these classes that this Spark has, None without any."""
    from py4j.protocol import Py4JJavaError

    for name in names:
        try:
            _load(spark, name, initialize=False)
        except Py4JJavaError as error:
            if "ClassNotFoundException" not in str(error):
                raise
        else:
            return name
    return None


def _load(spark: SparkSession, name: str, *, initialize: bool) -> None:
    loader = java_class(spark, "java.lang.Thread").currentThread().getContextClassLoader()
    java_class(spark, "java.lang.Class").forName(name, initialize, loader)
