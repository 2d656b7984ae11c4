"""What three idle brokers need: memory, and with many partitions also CPU and start time."""

import time

from bench.brokers import START_WAIT_MS, settle
from bench.clusters import SIZE, RunningCluster
from bench.measure import Bench, Measure

PARTITIONS = 10_000
TOPICS = 10
IDLE_SECONDS = 20.0
MB = 1_000_000


class ClusterIdle:
    """Means over the brokers; without ZooKeeper, and with KRaft's controllers included."""

    name = "cluster-idle"
    runs = 3
    settings = (
        f"three brokers; memory 5 s after a first topic; then {PARTITIONS:,} partitions with"
        f" {SIZE} replicas each in {TOPICS} topics, idle over {IDLE_SECONDS:.0f} s; then one broker"
        " stopped (SIGTERM) and started, until it takes connections and until it is in sync with"
        " all partitions again"
    )
    measures = (
        Measure("cluster memory idle, each", "MB", more_is_better=False, ratio=1.0, limit=100),
        Measure("10,000 partitions x 3: created in", "s", more_is_better=False, ratio=1.0),
        Measure("10,000 partitions x 3: idle CPU, each", "%", more_is_better=False, limit=2),
        Measure("10,000 partitions x 3: memory, each", "MB", more_is_better=False, limit=300),
        Measure("10,000 partitions x 3: stop of one", "s", more_is_better=False, ratio=1.0),
        Measure("10,000 partitions x 3: start of one", "s", more_is_better=False, limit=5),
        Measure("10,000 partitions x 3: start to in sync", "s", more_is_better=False, ratio=1.0),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        names = [f"many-{number}" for number in range(TOPICS)]
        with RunningCluster(
            contestant, bench.jars, prefix=bench.prefix, leaves_files=True
        ) as cluster:
            brokers = list(cluster.brokers.values())
            cluster.create_topic("first")
            settle(brokers[0], 5)
            idle = sum(broker.child.rss_bytes() for broker in brokers) / SIZE / MB
            began = time.monotonic()
            for name in names:
                cluster.create_topic(name, bench.amount(PARTITIONS // TOPICS))
            created = time.monotonic() - began
            settle(brokers[0], 10)
            before = sum(broker.child.cpu_seconds() for broker in brokers)
            settle(brokers[0], IDLE_SECONDS)
            used = sum(broker.child.cpu_seconds() for broker in brokers) - before
            many = sum(broker.child.rss_bytes() for broker in brokers) / SIZE / MB
            began = time.monotonic()
            brokers[-1].stop()
            stopped = time.monotonic() - began
            brokers[-1].start()
            brokers[-1].child.wait_for_port(brokers[-1].port, START_WAIT_MS)
            started = time.monotonic() - brokers[-1].child.started
            cluster.wait_in_sync(names)
            in_sync = time.monotonic() - brokers[-1].child.started
        values = (idle, created, used / IDLE_SECONDS / SIZE * 100, many, stopped, started, in_sync)
        return dict(zip((measure.name for measure in self.measures), values, strict=True))
