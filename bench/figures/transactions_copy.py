"""Consume, transform, produce: records and offsets in one transaction (KIP-447)."""

import json
import sys

from bench import rdkafka
from bench.brokers import running
from bench.figures.latency import percentile
from bench.figures.start import first_produce
from bench.figures.transactions import SETTINGS
from bench.measure import Bench, Measure

COUNT = 500_000
RECORDS = 500
"""In one transaction."""
RECORD_BYTES = 1000
WARM_UP_SHARE = 10


class TransactionsCopy:
    """One instance of the loop, so one transaction at a time."""

    name = "transactions-copy"
    runs = None
    settings = (
        f"{COUNT:,} records of {RECORD_BYTES} B in one partition, copied by confluent-kafka with"
        f" librdkafka's defaults, {RECORDS} in a transaction with their offsets; before it a tenth"
        " of it to warm up"
    )
    measures = (
        Measure("consume-transform-produce", "records/s", more_is_better=True, ratio=1.0),
        Measure("consume-transform-produce p50", "ms", more_is_better=False, ratio=1.0),
        Measure("consume-transform-produce p99", "ms", more_is_better=False, ratio=1.0),
        Measure("broker CPU, consume-transform-produce", "s/GB", more_is_better=False),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        count = bench.amount(COUNT)
        tool = bench.rdkafka_performance
        with running(contestant, bench.jars, SETTINGS, bench.prefix) as broker:
            sizes = {"warm": max(count // WARM_UP_SHARE, 2 * RECORDS), "load": count}
            for topic, size in sizes.items():
                first_produce(broker.address, f"{topic}-copy", 0)
                rdkafka.produce(tool, broker.address, topic, size, RECORD_BYTES)
            before = 0.0
            for topic, size in sizes.items():
                before = broker.child.cpu_seconds()
                command = [sys.executable, "-m", "bench.copying", broker.address]
                command += [topic, f"{topic}-copy", str(size), str(RECORDS)]
                found = json.loads(rdkafka.run(command).splitlines()[-1])
            cpu_seconds = broker.child.cpu_seconds() - before
        values = (
            found["records"] / found["seconds"],
            percentile(found["took_ms"], 0.5),
            percentile(found["took_ms"], 0.99),
            cpu_seconds / (count * RECORD_BYTES) * 1e9,
        )
        return dict(zip((measure.name for measure in self.measures), values, strict=True))
