"""Produce with acks=all to a topic with three replicas, on three brokers of one machine."""

from bench import rdkafka
from bench.clusters import RunningCluster
from bench.measure import Bench, Measure

WARM_UP_BYTES = 100_000_000


class ClusterThroughput:
    """One partition, one producer: the brokers share the machine's cores with it."""

    runs = None

    def __init__(self, label: str, size: int, count: int) -> None:
        self.name = f"cluster-throughput-{size}"
        self.size = size
        self.count = count
        self.settings = (
            f"three brokers; rdkafka_performance: {count:,} records of {size} B to one partition"
            f" with three replicas, acks=all, {' '.join(rdkafka.DEFAULTS)}; before it"
            f" {WARM_UP_BYTES // 1_000_000} MB to another topic"
        )
        self.measures = (
            Measure(f"replicated produce {label}", "MB/s", more_is_better=True, ratio=1.0),
            Measure(
                f"replicated produce {label} records", "records/s", more_is_better=True, ratio=1.0
            ),
        )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        tool = bench.rdkafka_performance
        with RunningCluster(contestant, bench.jars, prefix=bench.prefix) as cluster:
            for topic in ("warm", "load"):
                cluster.create_topic(topic)
            warm = bench.amount(WARM_UP_BYTES // self.size)
            rdkafka.produce(tool, cluster.address, "warm", warm, self.size)
            count = bench.amount(self.count)
            values = rdkafka.produce(tool, cluster.address, "load", count, self.size)
        return dict(zip((measure.name for measure in self.measures), values, strict=True))
