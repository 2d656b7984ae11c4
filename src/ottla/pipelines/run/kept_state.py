"""The state of a query in a batch that is not written again.

A deduplication, a join of streams or an aggregation loads in each batch the state that the batch
before it left, and the tasks that compute a batch commit it. A run that was cut off may have
committed none, and without it the next batch fails. Since 4.1 Spark also refuses a batch whose
tasks have not committed theirs in this run (SPARK-52008).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.pipelines.spark.jvm.operators import Operator, operators

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def keep_state(frame: DataFrame, plan: Operator) -> None:
    """Compute a batch and drop its rows, if the query keeps state; `plan`: its physical plan."""
    if any(operator.has_state() for operator in operators(plan)):
        frame.write.format("noop").mode("overwrite").save()
