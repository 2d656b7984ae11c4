"""Produce and consume with librdkafka: MB/s, records/s, and what each GB costs the broker."""

from bench import rdkafka
from bench.brokers import Running
from bench.figures.start import first_produce
from bench.measure import Bench, Measure

WARM_UP_BYTES = 200_000_000
GB = 1_000_000_000


class Throughput:
    """One partition, one producer, then one consumer from the beginning."""

    runs = None

    def __init__(self, label: str, size: int, count: int) -> None:
        self.name = f"throughput-{size}"
        self.label = label
        self.size = size
        self.count = count
        self.settings = (
            f"rdkafka_performance: {count:,} records of {size} B to one partition, acks=all,"
            f" {' '.join(rdkafka.DEFAULTS)}; then read from the beginning with the tool's own"
            f" settings; before it {WARM_UP_BYTES // 1_000_000} MB to and from another topic"
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
        values: list[float] = []
        with Running(contestant, bench.jars, prefix=bench.prefix) as broker:
            for topic, number in (("warm", warm), ("load", count)):
                first_produce(broker.address, topic, 0)
                values = []
                before = broker.child.cpu_seconds()
                values += rdkafka.produce(tool, broker.address, topic, number, self.size)
                between = broker.child.cpu_seconds()
                values.append((between - before) / (number * self.size / GB))
                values += rdkafka.consume(tool, broker.address, topic, number)
                after = broker.child.cpu_seconds()
                values.append((after - between) / (number * self.size / GB))
        return dict(zip((measure.name for measure in self.measures), values, strict=True))
