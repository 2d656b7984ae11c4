"""Produce and consume with librdkafka: MB/s, records/s, and the broker's CPU time per GB."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench import rdkafka
from bench.brokers import Broker, running
from bench.figures.start import first_produce
from bench.measure import Bench, Measure

WARM_UP_BYTES = 200_000_000
GB = 1_000_000_000
READS = 3


class Throughput:
    """One partition, one producer, then one consumer from the beginning, several times, because one
    read takes only seconds."""

    runs = None

    def __init__(self, label: str, size: int, count: int) -> None:
        self.name = f"throughput-{size}"
        self.label = label
        self.size = size
        self.count = count
        self.settings = (
            f"rdkafka_performance: {count:,} records of {size} B to one partition, acks=all,"
            f" {' '.join(rdkafka.DEFAULTS)}; then read from the beginning with the tool's own"
            f" settings, {READS} times of which the median counts; before it"
            f" {WARM_UP_BYTES // 1_000_000} MB to and from another topic"
        )
        self.measures = (
            Measure(f"produce {label}", "MB/s", more_is_better=True, ratio=1.0),
            Measure(f"produce {label} records", "records/s", more_is_better=True, ratio=1.0),
            Measure(f"broker CPU, produce {label}", "s/GB", more_is_better=False),
            Measure(f"consume {label}", "MB/s", more_is_better=True, ratio=1.0),
            Measure(f"consume {label} records", "records/s", more_is_better=True, ratio=1.0),
            Measure(f"broker CPU, consume {label}", "s/GB", more_is_better=False),
        )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        count = bench.amount(self.count)
        warm = bench.amount(WARM_UP_BYTES // self.size)
        tool = bench.rdkafka_performance
        with running(contestant, bench.jars, prefix=bench.prefix) as broker:
            self._load(broker, tool, "warm", warm, 1)
            values = self._load(broker, tool, "load", count, READS)
        return dict(zip((measure.name for measure in self.measures), values, strict=True))

    def _load(
        self, broker: Broker, tool: Path, topic: str, count: int, reads: int
    ) -> tuple[float, ...]:
        first_produce(broker.address, topic, 0)
        return load(broker, tool, broker.address, topic, count, self.size, reads)


def load(
    broker: Broker,
    tool: Path,
    address: str,
    topic: str,
    count: int,
    size: int,
    reads: int,
    options: Sequence[str] = (),
) -> tuple[float, ...]:
    """Write the records, then read them `reads` times: MB/s, records/s and the broker's CPU seconds
    per GB, of writing and then of reading. `options`: the tool's, for both.
    """
    size_gb = count * size / GB
    before = broker.child.cpu_seconds()
    produced = rdkafka.produce(tool, address, topic, count, size, *options)
    between = broker.child.cpu_seconds()
    consumed = [rdkafka.consume(tool, address, topic, count, *options) for _ in range(reads)]
    after = broker.child.cpu_seconds()
    return (
        *produced,
        (between - before) / size_gb,
        *(median(column) for column in zip(*consumed, strict=True)),
        (after - between) / size_gb / reads,
    )
