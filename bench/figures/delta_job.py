"""The Spark program of the figures `delta-*`: `delta_job JOB SCENARIO ADDRESS TOPIC FOLDER`.

JOB is one of JOBS. SCENARIO is JSON: {"max_rows": 1000} reads the whole topic in batches of
that size; {"interval": "1 second" or null, "rows": 15000, "partitions": 2, "burst": 30,
"pause_ms": 60} writes rows while the query runs, `burst` at a time and spread over the partitions;
with "waits", each burst waits until the previous one is in the table. "table_rows" is the number of
rows that the table of a job upsert-* has before. "url" is the database of the jobs jdbc-*, "target"
the topic of the jobs topic-*.

The last line printed is JSON: the rows of the table; the rows, the ms and the CPU seconds at the
end of each batch that had rows; the CPU seconds before the query; and the seconds from the start of
the query to its end. CPU is that of Python, the JVM and Python's workers together.
"""

import json
import sys
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from bench.cpu_over_time import CpuOverTime
from bench.figures import (
    delta_history_ottla,
    delta_ottla,
    delta_plain,
    delta_tuned,
    delta_upsert_ottla,
    delta_upsert_plain,
    delta_upsert_tuned,
    jdbc_ottla,
    jdbc_plain,
    jdbc_tuned,
    topic_ottla,
    topic_plain,
    topic_tuned,
)

SCHEMA = "id long, name string, amount double, note string"
JOBS: dict[str, Any] = {
    "plain": delta_plain,
    "tuned": delta_tuned,
    "ottla": delta_ottla,
    "upsert-plain": delta_upsert_plain,
    "upsert-tuned": delta_upsert_tuned,
    "upsert-ottla": delta_upsert_ottla,
    "history-ottla": delta_history_ottla,
    "jdbc-plain": jdbc_plain,
    "jdbc-tuned": jdbc_tuned,
    "jdbc-ottla": jdbc_ottla,
    "topic-plain": topic_plain,
    "topic-tuned": topic_tuned,
    "topic-ottla": topic_ottla,
}
MASTER = "local[2]"
BATCHES_KEPT = 1_000
BURST_WAIT_SECONDS = 300.0


def row(number: int, note: str) -> bytes:
    return (
        f'{{"id":{number},"name":"row {number % 1000}","amount":{number / 7},"note":"{note}"}}'
    ).encode()


class Batch(NamedTuple):
    """One batch that had rows. `ended`: seconds since 1970."""

    rows: int
    ms: int
    ended: float


def batches(query: StreamingQuery) -> list[Batch]:
    """The batches that had rows."""
    found: dict[int, Batch] = {}
    for progress in query.recentProgress:
        batch = json.loads(progress.json) if hasattr(progress, "json") else progress
        if batch["numInputRows"]:
            ms = batch["durationMs"]["triggerExecution"]
            ended = datetime.fromisoformat(batch["timestamp"]).timestamp() + ms / 1000
            found[batch["batchId"]] = Batch(batch["numInputRows"], ms, ended)
    return [found[number] for number in sorted(found)]


def produce(query: StreamingQuery, address: str, topic: str, scenario: Mapping[str, Any]) -> None:
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    rows, burst, partitions = scenario["rows"], scenario["burst"], scenario["partitions"]
    began = time.monotonic()
    for first in range(0, rows, burst):
        for number in range(first, first + burst):
            producer.produce(topic, row(number, "x" * 100), partition=number % partitions)
        producer.flush(BURST_WAIT_SECONDS)
        if scenario.get("waits"):
            wait_for_rows(query, first + burst)
        else:
            due = began + (first / burst + 1) * scenario["pause_ms"] / 1000
            time.sleep(max(due - time.monotonic(), 0))
    wait_for_rows(query, rows)


def wait_for_rows(query: StreamingQuery, rows: int) -> None:
    until = time.monotonic() + BURST_WAIT_SECONDS
    while sum(batch.rows for batch in batches(query)) < rows:
        if time.monotonic() > until or not query.isActive:
            raise SystemExit(f"{rows} rows were not read: {query.exception()}")
        time.sleep(0.02)


def run(spark: SparkSession, job: str, arguments: list[str]) -> dict[str, Any]:
    scenario = json.loads(arguments[0])
    address, topic, folder = arguments[1], arguments[2], Path(arguments[3])
    live = "rows" in scenario
    trigger: dict[str, Any] = {"availableNow": True}
    if live:
        interval = scenario.get("interval")
        trigger = {"processingTime": interval} if interval else {}
    if "table_rows" in scenario:
        JOBS[job].make_table(spark, folder, scenario["table_rows"])
    target = {name: scenario[name] for name in ("url", "target") if name in scenario}
    began = time.time()
    with CpuOverTime() as cpu:
        query = JOBS[job].start(
            spark, address, topic, SCHEMA, folder, trigger, scenario.get("max_rows"), **target
        )
        if live:
            produce(query, address, topic, scenario)
            found = batches(query)
            query.stop()
        else:
            query.awaitTermination()
            found = batches(query)
    seconds = time.time() - began
    if target:
        rows = JOBS[job].count(spark, address, **target)
    else:
        rows = spark.read.format("delta").load(str(folder / "table")).count()
    told = [(batch.rows, batch.ms, cpu.at(batch.ended)) for batch in found]
    return {"rows": rows, "batches": told, "cpu_before": cpu.at(began), "seconds": seconds}


def main() -> None:
    job, *arguments = sys.argv[1:]
    spark = JOBS[job].open_session(MASTER)
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", BATCHES_KEPT)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        found = run(spark, job, arguments)
    finally:
        spark.stop()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
