"""A broker with 10,000 partitions: its start time, and its CPU and memory when idle."""

import time

from confluent_kafka.admin import AdminClient, NewTopic

from bench.brokers import START_WAIT_MS, running, settle
from bench.figures.start import first_produce
from bench.measure import Bench, Measure

TOPICS = 10
PARTITIONS = 1000
IDLE_SECONDS = 20.0
CREATE_SECONDS = 300


class Partitions:
    """Creates the topics, stops the broker cleanly and starts it again."""

    name = "partitions-10000"
    runs = 3
    settings = (
        f"{TOPICS} topics of {PARTITIONS:,} empty partitions, clean stop, start until a record to"
        f" the last partition is acknowledged; 10 s later CPU over {IDLE_SECONDS:.0f} s (share of"
        " one core) and VmRSS; 3 runs"
    )
    measures = (
        Measure("start with 10,000 partitions", "s", more_is_better=False, ratio=1.0, limit=5),
        Measure("idle CPU with 10,000 partitions", "%", more_is_better=False, ratio=1.0, limit=2),
        Measure("memory with 10,000 partitions", "MB", more_is_better=False, ratio=1.0, limit=300),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        partitions = bench.amount(PARTITIONS)
        with running(contestant, bench.jars, prefix=bench.prefix) as broker:
            admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
            for number in range(TOPICS):
                topic = NewTopic(f"many-{number}", partitions, 1)
                made = admin.create_topics([topic], operation_timeout=CREATE_SECONDS)
                made[f"many-{number}"].result(CREATE_SECONDS)
            broker.stop()
            broker.start()
            broker.child.wait_for_port(broker.port, START_WAIT_MS)
            first_produce(broker.address, f"many-{TOPICS - 1}", partitions - 1)
            took = time.monotonic() - broker.child.started
            settle(broker, 10)
            idle = settle(broker, IDLE_SECONDS) * 100
            return {
                "start with 10,000 partitions": took,
                "idle CPU with 10,000 partitions": idle,
                "memory with 10,000 partitions": broker.child.rss_bytes() / 1_000_000,
            }
