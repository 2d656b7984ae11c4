"""The Spark job of the figure `delta`, a program of its own: `delta_job ADDRESS TOPIC WARM FOLDER`.

Streams the topic WARM and then TOPIC into Delta tables below FOLDER, each until all is read, and
prints as JSON the seconds and rows of the second. The pipeline is what a user would write.
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from ottla import pipelines

SCHEMA = "id long, name string, amount double, note string"


def stream(spark: SparkSession, address: str, topic: str, folder: Path) -> tuple[float, int]:
    """Read all of a topic into a Delta table; seconds it took and rows written."""
    began = time.monotonic()
    rows = pipelines.topic(spark, topic, bootstrap_servers=address, schema=SCHEMA)
    query = pipelines.to_delta(
        rows,
        str(folder / topic),
        checkpoint=str(folder / f"{topic}-checkpoint"),
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    took = time.monotonic() - began
    return took, spark.read.format("delta").load(str(folder / topic)).count()


def main() -> None:
    address, topic, warm, folder = sys.argv[1:]
    spark = pipelines.session("ottla-bench", master="local[2]")
    try:
        stream(spark, address, warm, Path(folder))
        took, rows = stream(spark, address, topic, Path(folder))
    finally:
        spark.stop()
    print(json.dumps({"seconds": took, "rows": rows}))


if __name__ == "__main__":
    main()
