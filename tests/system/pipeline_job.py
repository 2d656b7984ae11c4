"""A pipeline as a user would write it, run as a process of its own so that it can be killed.

`python -m tests.system.pipeline_job BOOTSTRAP TOPIC FOLDER [--die MOMENT]`

Without `--die` it takes all there is, then prints what the tables and the group hold, as JSON.
With it, the second batch kills this process and its JVM, with SIGKILL, at that moment.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ottla.pipelines import report_progress, session, to_delta, topic
from ottla.pipelines.progress.report import Reporter
from ottla.pipelines.run import start
from ottla.pipelines.sinks.target import Target

SCHEMA = "id BIGINT NOT NULL"
GROUP = "pipeline"
SETTINGS = {
    "spark.ui.enabled": False,
    "spark.ui.showConsoleProgress": False,
    "spark.sql.shuffle.partitions": 2,
    "spark.databricks.delta.snapshotPartitions": 1,
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def die() -> None:
    """Kill Python and the JVM at once: they are one process group."""
    os.killpg(os.getpgid(0), signal.SIGKILL)


class Moments:
    """Where the second batch of this run dies."""

    def __init__(self, moment: str, table: Path) -> None:
        self.table = table
        self.batches = 0
        chosen: dict[str, Callable[[], None]] = {
            "inside": self.inside,
            "between tables": self.between_tables,
            "between batches": self.between_batches,
        }
        chosen[moment]()

    def inside(self) -> None:
        """While Delta writes the batch: there is a new data file and no commit yet."""
        append = Target.append

        def watch(known: int) -> None:
            while len(list(self.table.glob("*.parquet"))) == known:
                time.sleep(0.000_5)
            die()

        def second(target: Target, frame: Any, query_id: str, batch: int) -> None:
            self.batches += 1
            if self.batches == 2:
                known = len(list(self.table.glob("*.parquet")))
                threading.Thread(target=watch, args=(known,), daemon=True).start()
            append(target, frame, query_id, batch)

        Target.append = second  # type: ignore[method-assign]

    def between_tables(self) -> None:
        """When the table has the batch, but that of the rejected rows and Spark know nothing."""
        write_rejects = start.write_rejects

        def second(*arguments: Any, **options: Any) -> None:
            self.batches += 1
            if self.batches == 2:
                die()
            write_rejects(*arguments, **options)

        start.write_rejects = second

    def between_batches(self) -> None:
        """When Spark is done with a batch and the group does not know it yet."""
        progressed = Reporter.progressed

        def second(reporter: Reporter, text: str) -> None:
            self.batches += "addBatch" in text
            if self.batches == 2:
                die()
            progressed(reporter, text)

        Reporter.progressed = second  # type: ignore[method-assign]


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("bootstrap", "topic", "folder"):
        parser.add_argument(name)
    parser.add_argument("--die")
    chosen = parser.parse_args()
    folder = Path(chosen.folder)
    if chosen.die:
        Moments(chosen.die, folder / "table")

    spark = session("job", master="local[2]", conf=SETTINGS)
    spark.sparkContext.setLogLevel("ERROR")
    report_progress(spark, bootstrap_servers=chosen.bootstrap, group=GROUP)
    frame = topic(spark, chosen.topic, bootstrap_servers=chosen.bootstrap, schema=SCHEMA)
    query = to_delta(
        frame.select("value.*", "partition", "offset"),
        folder / "table",
        checkpoint=folder / "checkpoint",
        trigger=None if chosen.die else {"availableNow": True},
    )
    query.awaitTermination()
    print(json.dumps(found(spark, folder)), flush=True)
    return 0


def found(spark: Any, folder: Path) -> dict[str, Any]:
    """Return what the tables hold, and the Java that ran this."""
    places: dict[str, list[list[int]]] = {}
    for name in ("table", "table_rejected"):
        rows: list[Any] = []
        if (folder / name).exists():
            rows = spark.read.format("delta").load(f"{folder}/{name}").collect()
        places[name] = sorted([row["partition"], row["offset"]] for row in rows)
        if name == "table":
            places["ids"] = sorted([row["id"]] for row in rows)
    return {
        "places": places,
        "versions": versions(spark, folder / "table"),
        "java": spark._jvm.System.getProperty("java.home"),
    }


def versions(spark: Any, table: Path) -> dict[str, dict[str, int]]:
    """Return for each version of the table the next offset after it, by partition."""
    latest = spark.sql(f"DESCRIBE HISTORY delta.`{table}` LIMIT 1").first()["version"]
    reader = spark.read.format("delta").option("versionAsOf", latest)
    rows = reader.load(str(table)).groupBy("partition").max("offset").collect()
    return {str(latest): {str(row[0]): row[1] + 1 for row in rows}}


if __name__ == "__main__":
    sys.exit(main())
