"""Resident memory: idle after one record, and after a large load."""

from bench import rdkafka
from bench.brokers import running, settle
from bench.figures.start import first_produce
from bench.measure import Bench, Measure

BYTES = 5_000_000_000
SIZE = 1000
MB = 1_000_000


class Memory:
    """Writes the whole load and reads it back before the second measurement."""

    name = "memory"
    runs = None
    settings = (
        "VmRSS; idle: 5 s after the first record; loaded: 5 s after 5 GB of 1000 B records were"
        " written (acks=all, rdkafka_performance, 1 partition) and read back; Kafka with its own"
        " start script's flags (-Xmx1G -Xms1G, G1)"
    )
    measures = (
        Measure("memory idle", "MB", more_is_better=False, ratio=1.0, limit=80),
        Measure("memory after 5 GB", "MB", more_is_better=False, ratio=1.0, limit=150),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        count = bench.amount(BYTES // SIZE)
        tool = bench.rdkafka_performance
        with running(contestant, bench.jars, prefix=bench.prefix) as broker:
            first_produce(broker.address, "load", 0)
            settle(broker, 5)
            idle = broker.child.rss_bytes() / MB
            rdkafka.produce(tool, broker.address, "load", count, SIZE)
            rdkafka.consume(tool, broker.address, "load", count)
            settle(broker, 5)
            return {"memory idle": idle, "memory after 5 GB": broker.child.rss_bytes() / MB}
