"""What pipelines require of a session: Spark's own JVM, and Delta's open classes in it.

Spark Connect's session is a client that has no JVM; a vendor's Spark may hide it, or keep Delta's
classes elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark.jvm.attributes import LEADING
from ottla.pipelines.spark.jvm.classes import first_class
from ottla.pipelines.spark.jvm.delta_log import DELTA_LOG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONNECT: Final = "pyspark.sql.connect."
_NEEDED: Final = (
    "Ottla's pipelines call the JVM of Spark's driver, so they need a classic session of PySpark "
    "in the driver's process, such as ottla.pipelines.session() starts where SPARK_REMOTE is not "
    "set"
)


def is_connect(spark: SparkSession) -> bool:
    """Tell whether a session is a client of a server of Spark Connect."""
    return type(spark).__module__.startswith(_CONNECT)


def require_jvm(spark: SparkSession) -> None:
    """Raise PipelineError unless the JVM can be reached from a session."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    kind = f"{type(spark).__module__}.{type(spark).__qualname__}"
    if is_connect(spark):
        raise PipelineError(f"This is a session of Spark Connect ({kind}). {_NEEDED}")
    for name in LEADING:
        try:
            found = getattr(spark, name)
        except (AttributeError, PySparkException, Py4JError):
            found = None
        if found is None:
            raise PipelineError(f"This session ({kind}) does not give its {name}. {_NEEDED}")


def require_delta(spark: SparkSession) -> None:
    """Raise PipelineError unless Spark has Delta with the classes of delta.io."""
    if first_class(spark, [DELTA_LOG]) is None:
        raise PipelineError(
            f"This Spark {spark.version} does not have the class {DELTA_LOG}. Tables need Delta's "
            "jars of delta.io: let session() start Spark, or on AWS Glue give the job "
            "'--datalake-formats delta'. A vendor's own Delta has other classes"
        )
