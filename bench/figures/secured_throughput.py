"""Produce and consume over TLS 1.3 and SCRAM: MB/s, records/s, and the broker's CPU time per GB."""

from bench import rdkafka
from bench.figures.start import first_produce
from bench.figures.throughput import READS, load
from bench.measure import Bench, Measure
from bench.secured import MECHANISM, SASL_SSL, TLS, running

WARM_UP_BYTES = 100_000_000


class SecuredThroughput:
    """What `Throughput` measures, on a listener with SASL_SSL."""

    runs = None

    def __init__(self, label: str, size: int, count: int) -> None:
        self.name = f"secured-throughput-{size}"
        self.size = size
        self.count = count
        self.settings = (
            f"{SASL_SSL}, {TLS}, {MECHANISM}, a certificate of P-256 in PEM; rdkafka_performance:"
            f" {count:,} records of {size} B to one partition, acks=all,"
            f" {' '.join(rdkafka.DEFAULTS)}; then read from the beginning, {READS} times of which"
            f" the median counts; before it {WARM_UP_BYTES // 1_000_000} MB to and from another"
            " topic"
        )
        over = f"over TLS {label}"
        self.measures = (
            Measure(f"produce {over}", "MB/s", more_is_better=True, ratio=1.0),
            Measure(f"produce {over} records", "records/s", more_is_better=True),
            Measure(f"broker CPU, produce {over}", "s/GB", more_is_better=False),
            Measure(f"consume {over}", "MB/s", more_is_better=True, ratio=1.0),
            Measure(f"consume {over} records", "records/s", more_is_better=True),
            Measure(f"broker CPU, consume {over}", "s/GB", more_is_better=False),
        )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        tool, size = bench.rdkafka_performance, self.size
        warm, count = bench.amount(WARM_UP_BYTES // size), bench.amount(self.count)
        with running(contestant, bench) as secured:
            for topic in ("warm", "load"):
                first_produce(secured.address, topic, 0, secured.client)
            at = (secured.broker, tool, secured.address)
            load(*at, "warm", warm, size, 1, secured.options)
            values = load(*at, "load", count, size, READS, secured.options)
        return dict(zip((measure.name for measure in self.measures), values, strict=True))
