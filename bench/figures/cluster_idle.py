"""What three brokers need when nobody uses them: memory, and CPU with many partitions."""

import time

from bench.brokers import settle
from bench.clusters import SIZE, RunningCluster
from bench.measure import Bench, Measure

PARTITIONS = 10_000
TOPICS = 10
IDLE_SECONDS = 20.0
MB = 1_000_000


class ClusterIdle:
    """Means over the brokers; ZooKeeper's own need is not counted, nor is KRaft's apart."""

    name = "cluster-idle"
    runs = 3
    settings = (
        f"three brokers; memory 5 s after a first topic; then {PARTITIONS:,} partitions with one"
        f" replica each in {TOPICS} topics; idle over {IDLE_SECONDS:.0f} s"
    )
    measures = (
        Measure("cluster memory idle, each", "MB", more_is_better=False, ratio=1.0, limit=100),
        Measure("10,000 partitions on three: created in", "s", more_is_better=False, ratio=1.0),
        Measure("10,000 partitions on three: idle CPU, each", "%", more_is_better=False, limit=2),
        Measure("10,000 partitions on three: memory, each", "MB", more_is_better=False, limit=300),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        with RunningCluster(contestant, bench.jars) as cluster:
            brokers = list(cluster.brokers.values())
            cluster.create_topic("first")
            settle(brokers[0], 5)
            idle = sum(broker.child.rss_bytes() for broker in brokers) / SIZE / MB
            began = time.monotonic()
            for number in range(TOPICS):
                cluster.create_topic(
                    f"many-{number}", bench.amount(PARTITIONS // TOPICS), replicas=1
                )
            created = time.monotonic() - began
            before = sum(broker.child.cpu_seconds() for broker in brokers)
            settle(brokers[0], IDLE_SECONDS)
            used = sum(broker.child.cpu_seconds() for broker in brokers) - before
            many = sum(broker.child.rss_bytes() for broker in brokers) / SIZE / MB
        values = (idle, created, used / IDLE_SECONDS / SIZE * 100, many)
        return dict(zip((measure.name for measure in self.measures), values, strict=True))
