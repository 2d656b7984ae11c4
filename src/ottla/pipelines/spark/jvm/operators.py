"""The physical plan of a batch (SparkPlan): its operators, what they counted, what they read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.pipelines.spark.jvm.attributes import java_session
from ottla.pipelines.spark.jvm.plan import TreeNode, in_list

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# Each operator with state counts its rows (StateStoreWriter); its class has another package from
# version to version.
_STATE: Final = "numTotalStateRows"
_DROPPED: Final = "numRowsDroppedByWatermark"


@dataclass(frozen=True, slots=True)
class Operator(TreeNode):
    """One step of the plan."""

    @property
    def children(self) -> list[Operator]:
        return [Operator(one) for one in in_list(self._java.children())]

    def has_state(self) -> bool:
        """Tell whether it keeps state from batch to batch."""
        return bool(self._java.metrics().contains(_STATE))

    def drops_late_rows(self) -> bool:
        """Tell whether it leaves out rows that are older than the watermark."""
        return bool(self._java.metrics().contains(_DROPPED))

    def dropped(self) -> int:
        """Return how many rows it left out in this batch."""
        return int(self._java.metrics().apply(_DROPPED).value())

    def late_watermark_ms(self) -> int | None:
        """Return the watermark before which rows are late, since 1970; None without one."""
        found = self._java.eventTimeWatermarkForLateEvents()
        return int(found.get()) if found.isDefined() else None

    @property
    def schema(self) -> StructType:
        """The columns of its rows."""
        from pyspark.sql.types import StructType

        return StructType.fromJson(json.loads(self._java.schema().json()))

    def rows(self, session: SparkSession) -> DataFrame:
        """Return the rows that it makes; those of a shuffle are there and not computed again."""
        from pyspark.sql import DataFrame

        java = java_session(session)
        rows = java.internalCreateDataFrame(self._java.execute(), self._java.schema(), False)
        return DataFrame(rows, session)


def operators(root: Operator) -> Iterator[Operator]:
    """Return all operators of a plan."""
    plans = [root]
    while plans:
        node = plans.pop()
        yield node
        plans += node.children
