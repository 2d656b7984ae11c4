"""Produce with acks=all to a topic with three replicas, on three brokers of one machine."""

from bench import rdkafka
from bench.clusters import PLAINTEXT, RunningCluster
from bench.measure import Bench, Measure
from bench.secured import TLS

WARM_UP_BYTES = 100_000_000


class ClusterThroughput:
    """One partition, one producer: the brokers share the machine's cores with it."""

    runs = None

    def __init__(self, label: str, size: int, count: int, protocol: str = PLAINTEXT) -> None:
        """`protocol`: of clients, and between brokers and controllers."""
        secured = protocol != PLAINTEXT
        self.name = f"{'secured-' if secured else ''}cluster-throughput-{size}"
        self.size = size
        self.count = count
        self.protocol = protocol
        everywhere = f" with {TLS} everywhere, a certificate of P-256 in PEM" if secured else ""
        self.settings = (
            f"three brokers{everywhere}; rdkafka_performance: {count:,} records of {size} B to one"
            f" partition with three replicas, acks=all, {' '.join(rdkafka.DEFAULTS)}; before it"
            f" {WARM_UP_BYTES // 1_000_000} MB to another topic"
        )
        over = f"over TLS {label}" if secured else label
        self.measures = (
            Measure(f"replicated produce {over}", "MB/s", more_is_better=True, ratio=1.0),
            Measure(
                f"replicated produce {over} records", "records/s", more_is_better=True, ratio=1.0
            ),
        )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        tool, protocol = bench.rdkafka_performance, self.protocol
        with RunningCluster(
            contestant, bench.jars, prefix=bench.prefix, protocol=protocol
        ) as cluster:
            for topic in ("warm", "load"):
                cluster.create_topic(topic)
            warm = bench.amount(WARM_UP_BYTES // self.size)
            rdkafka.produce(tool, cluster.address, "warm", warm, self.size, *cluster.options)
            count = bench.amount(self.count)
            values = rdkafka.produce(
                tool, cluster.address, "load", count, self.size, *cluster.options
            )
        return dict(zip((measure.name for measure in self.measures), values, strict=True))
