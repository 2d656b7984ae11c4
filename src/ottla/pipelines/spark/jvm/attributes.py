"""The private attributes of PySpark that lead to its JVM: they are read here alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

LEADING: Final = ("_jvm", "_jsparkSession")
"""The attributes of a session that lead to its JVM."""
_CLASSES: Final[WeakKeyDictionary[Any, dict[str, Any]]] = WeakKeyDictionary()
"""The classes of each JVM that were asked for, by name: few, and each name is in the code."""


def java_session(spark: SparkSession) -> Any:
    """Return the JVM's SparkSession."""
    return spark._jsparkSession


def java_frame(frame: DataFrame) -> Any:
    """Return the JVM's DataFrame."""
    return frame._jdf


def java_column(column: Column) -> Any:
    """Return the JVM's Column."""
    return column._jc


def java_context(context: SparkContext) -> Any:
    """Return the JVM's JavaSparkContext, None after it was stopped."""
    return context._jsc


def temporary_folder(context: SparkContext) -> Path:
    """Return the folder of a context in the driver, which is removed when it stops."""
    return Path(context._temp_dir)


def java_query(query: StreamingQuery) -> Any:
    """Return the JVM's StreamingQuery."""
    return query._jsq


def java_class(spark: SparkSession | SparkContext, name: str) -> Any:
    """Return a class of the JVM by its full name: one call, where `jvm.a.b.C` takes three, and none
    when it is asked for again.
    """
    return _class_of(spark._jvm, name)


def _class_of(jvm: Any, name: str) -> Any:
    from py4j.java_gateway import JavaClass

    known = _CLASSES.setdefault(jvm, {})
    if (found := known.get(name)) is None:
        found = getattr(jvm, name)
        # What is no class may become one: py4j takes it for a package.
        if isinstance(found, JavaClass):
            known[name] = found
    return found


def gateway() -> Any:
    """Return py4j's connection to the JVM, None before it has started."""
    from pyspark import SparkContext

    return SparkContext._gateway


def is_instance(java: Any, name: str) -> bool:
    """Tell whether an object of the JVM is of a class, by its full name."""
    types = _class_of(gateway().jvm, "py4j.reflection.TypeUtil")
    return bool(types.isInstanceOf(name, java))
