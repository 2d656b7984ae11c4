"""`python -m tests.system.large_rows_job BOOTSTRAP TOPIC URL CHECKPOINT BYTES [MAX_ROWS]`.

Takes all records of a topic into the table `large` of a PostgreSQL, with so many bytes in each row,
and a driver of Spark's own size (1 GB). MAX_ROWS: in batches of that size, from where the table
ends. Prints as JSON the error, and the most memory that the JVM had.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from components import postgres
from ottla.pipelines import PipelineError, session, to_postgresql, topic

MEMORY = "1g"


def main() -> None:
    bootstrap, name, url, checkpoint, size, *most = sys.argv[1:]
    conf = {
        "spark.driver.extraClassPath": str(postgres.fetched_driver()),
        "spark.driver.memory": MEMORY,
        "spark.ui.enabled": False,
    }
    spark = session("large", master="local[2]", conf=conf)
    spark.sparkContext.setLogLevel("OFF")
    process = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    where: dict[str, Any] = {"bootstrap_servers": bootstrap}
    if most:
        where |= {"max_rows": int(most[0]), "starting": "table"}
    rows = topic(spark, name, schema="id BIGINT", **where)
    error = None
    try:
        to_postgresql(
            rows.selectExpr("value.id", f"repeat('x', {size}) AS word"),
            "large",
            url=url,
            user=postgres.USER,
            password=postgres.PASSWORD,
            checkpoint=checkpoint,
            trigger={"availableNow": True},
        ).awaitTermination()
    except PipelineError as failure:
        error = str(failure)
    status = Path(f"/proc/{process}/status")
    peak = re.search(r"VmHWM:\s+(\d+) kB", status.read_text() if status.exists() else "")
    print(json.dumps({"error": error, "peak_bytes": int(peak[1]) << 10 if peak else None}))


if __name__ == "__main__":
    main()
