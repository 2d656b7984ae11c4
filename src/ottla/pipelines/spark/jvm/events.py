"""The events that Spark has for its listeners."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def wait_for_events(spark: SparkSession, within_ms: int) -> None:
    """Let Spark deliver its events to the listeners.

    Raises Py4JError: they were not delivered in time; AttributeError: the session was stopped.
    """
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(within_ms)
