"""The state of a query in a batch that is not written again.

A deduplication, a join of streams or an aggregation loads in each batch the state that the batch
before it left, and the tasks that compute a batch commit it. A run that was cut off may have
committed none, and without it the next batch fails. Since 4.1 Spark also refuses a batch whose
tasks have not committed theirs in this run (SPARK-52008).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Each operator with state counts its rows (StateStoreWriter); its class has another package from
# version to version.
_STATE: Final = "numTotalStateRows"


def keep_state(frame: DataFrame, plan: Any) -> None:
    """Compute a batch and drop its rows, if the query keeps state; `plan`: its physical plan."""
    if _has_state(plan):
        frame.write.format("noop").mode("overwrite").save()


def _has_state(plan: Any) -> bool:
    plans = [plan]
    while plans:
        node = plans.pop()
        if node.metrics().contains(_STATE):
            return True
        children = node.children()
        plans += [children.apply(index) for index in range(children.size())]
    return False
