"""What the table of flights tells: `python -m demo.summary TABLE` prints it as JSON."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from ottla.pipelines import PipelineError, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


QUIET = {"spark.ui.enabled": False, "spark.ui.showConsoleProgress": False}


def main() -> int:
    try:
        spark = session("flights", conf=QUIET)
    except PipelineError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(summary(spark.read.format("delta").load(sys.argv[1]))), flush=True)
    spark.stop()
    return 0


def summary(table: DataFrame) -> dict[str, Any]:
    """Return the count, the worst delay of each airline and the most delayed flight."""
    from pyspark.sql import functions as F  # noqa: N812

    # The whole flight comes along with its delay: the greatest of structs goes by the first.
    flight = F.struct(
        "dep_delay", "flight", "origin", "dest", "month", "day", "partition", "offset"
    )
    airlines = (
        table.groupBy("airline")
        .agg(
            F.count("*").alias("flights"),
            F.avg("dep_delay").alias("mean"),
            F.max(flight).alias("worst"),
        )
        .orderBy(F.desc("worst.dep_delay"))
        .collect()
    )
    return {
        "rows": sum(row["flights"] for row in airlines),
        "airlines": [row.asDict(recursive=True) for row in airlines],
    }


if __name__ == "__main__":
    sys.exit(main())
