"""The pipeline of the demo, a process of its own: the topic, joined with airlines, into Delta.

It says on standard output, one JSON object a line, what it does, and stops when its standard
input ends or a line comes in.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from demo.flights import SCHEMA, TOPIC, data_folder
from ottla.pipelines import PipelineError, report_progress, session, to_delta, topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


QUIET = {"spark.ui.enabled": False, "spark.ui.showConsoleProgress": False}


def say(**words: Any) -> None:
    print(json.dumps(words), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--group", required=True)
    chosen = parser.parse_args()
    try:
        return run(chosen.bootstrap, chosen.folder, chosen.group)
    except PipelineError as error:
        say(error=str(error))
        return 1


def run(bootstrap: str, folder: str, group: str) -> int:
    spark = session("flights", conf=QUIET)
    say(session=spark.version)
    report_progress(spark, bootstrap_servers=bootstrap, group=group)

    airlines = spark.read.csv(str(data_folder() / "airlines.csv"), header=True)
    flights = topic(spark, TOPIC, bootstrap_servers=bootstrap, schema=SCHEMA)
    rows = flights.select("value.*", "partition", "offset", "timestamp").join(
        airlines.withColumnRenamed("name", "airline"), "carrier", "left"
    )
    table = f"{folder}/flights"
    query = to_delta(rows, table, checkpoint=f"{folder}/checkpoint")
    say(query=query.name)

    wait_for_the_word(query)
    query.stop()
    say(**summary(spark.read.format("delta").load(table)))
    spark.stop()
    return 0


def wait_for_the_word(query: Any) -> None:
    """Wait for a line on standard input, or for its end: then whoever started this is gone."""
    told = threading.Event()

    def read() -> None:
        word = sys.stdin.readline()
        told.set()
        if not word:
            os._exit(1)

    threading.Thread(target=read, daemon=True).start()
    while query.isActive and not told.wait(0.1):
        pass
    if not query.isActive and query.exception() is not None:
        raise PipelineError(str(query.exception()).splitlines()[0])


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
