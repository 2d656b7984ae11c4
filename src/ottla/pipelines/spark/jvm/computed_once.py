"""Whether Spark computes each row of a frame once, for those who write while it computes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ottla.pipelines.spark.jvm.attributes import java_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A task of such a master is tried once: its failure fails the job (SparkContext).
_ONE_TRY: Final = re.compile(r"local(\[(\d+|\*)\])?")
# A shuffle whose files are lost is computed again, and what follows it. The plan of a batch may
# begin with an RDD; the description of an RDD has this sign before each shuffle.
_SHUFFLES: Final = re.compile(r"Exchange|AdaptiveSparkPlan|Subquery|InMemory")
_SHUFFLED: Final = "+-"


def computes_once(frame: DataFrame) -> bool:
    """Tell whether Spark gives each row of a frame to who asks exactly once, or fails the job, and
    does so in this JVM.
    """
    spark = frame.sparkSession
    if _ONE_TRY.fullmatch(spark.sparkContext.master) is None:
        return False
    execution = java_frame(frame).queryExecution()
    if _SHUFFLES.search(str(execution.executedPlan().toString())) is not None:
        return False
    return _SHUFFLED not in str(execution.toRdd().toDebugString())
