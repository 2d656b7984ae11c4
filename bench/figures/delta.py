"""Kafka to Delta by Spark: the same job, reading from each broker in turn."""

import json
import sys
import tempfile

from confluent_kafka import Producer

from bench import rdkafka
from bench.brokers import running
from bench.measure import Bench, ClientError, Measure

ROWS = 300_000
WARM_UP_ROWS = 20_000
PARTITIONS = 2
NOTE = "x" * 930
FLUSH_SECONDS = 120.0


def fill(address: str, topic: str, rows: int) -> None:
    """Write JSON rows of about 1 KB, spread over the partitions. Raises ClientError."""
    producer = Producer({"bootstrap.servers": address, "queue.buffering.max.messages": 1_000_000})
    for number in range(rows):
        value = (
            f'{{"id":{number},"name":"row {number % 1000}","amount":{number / 7},"note":"{NOTE}"}}'
        )
        while True:
            try:
                producer.produce(topic, value.encode(), partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(FLUSH_SECONDS):
        raise ClientError(f"not all rows of {topic} were taken")


class Delta:
    """Needs PySpark and the jars of Delta, which its Ivy fetches."""

    name = "delta"
    runs = None
    settings = (
        f"{ROWS:,} JSON rows of about 1 KB in {PARTITIONS} partitions; ottla.pipelines, local[2],"
        f" availableNow, after a warm-up stream of {WARM_UP_ROWS:,} rows in the same session; from"
        " the start of the query to its end"
    )
    measures = (Measure("Kafka to Delta", "rows/s", more_is_better=True, ratio=1.0),)

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        rows = bench.amount(ROWS)
        settings = {"num.partitions": str(PARTITIONS)}
        with (
            running(contestant, bench.jars, settings, prefix=bench.prefix) as broker,
            tempfile.TemporaryDirectory() as folder,
        ):
            fill(broker.address, "warm", WARM_UP_ROWS)
            fill(broker.address, "rows", rows)
            job = [sys.executable, "-m", "bench.figures.delta_job", broker.address]
            said = rdkafka.run([*job, "rows", "warm", folder])
            found = json.loads(said.splitlines()[-1])
        if found["rows"] < rows:
            raise ClientError(f"the table has {found['rows']} rows of {rows}")
        return {"Kafka to Delta": rows / found["seconds"]}
