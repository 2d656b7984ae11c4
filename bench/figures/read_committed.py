"""Reading a log of transactions of which some were aborted."""

from statistics import median

from confluent_kafka import Producer

from bench import rdkafka
from bench.brokers import running
from bench.figures.start import first_produce
from bench.figures.transactions import SETTINGS
from bench.measure import Bench, Measure

TRANSACTIONS = 10_000
RECORDS = 100
"""Of one transaction."""
ABORTED = 10
"""One transaction of this many is aborted."""
RECORD_BYTES = 1000
READS = 3
WAIT_SECONDS = 60.0
COMMITTED_ONLY = ("-X", "isolation.level=read_committed")


def write(address: str, topic: str, transactions: int) -> int:
    """Write the transactions to partition 0; return the number of committed records."""
    producer = Producer(
        {"bootstrap.servers": address, "transactional.id": "writer", "linger.ms": 0, "log_level": 0}
    )
    producer.init_transactions(WAIT_SECONDS)
    committed = 0
    for number in range(transactions):
        producer.begin_transaction()
        for _ in range(RECORDS):
            producer.produce(topic, b"x" * RECORD_BYTES, partition=0)
        if number % ABORTED:
            producer.commit_transaction(WAIT_SECONDS)
            committed += RECORDS
        else:
            producer.flush(WAIT_SECONDS)  # an abort drops what is still in the client's queue
            producer.abort_transaction(WAIT_SECONDS)
    return committed


class ReadCommitted:
    """One consumer, from the beginning, several times, because one read takes only seconds."""

    name = "read-committed"
    runs = None
    settings = (
        f"{TRANSACTIONS:,} transactions of {RECORDS} records of {RECORD_BYTES} B in one partition,"
        f" one of {ABORTED} aborted; read by rdkafka_performance ({' '.join(COMMITTED_ONLY)}),"
        f" {READS} times of which the median counts, after one to warm up"
    )
    measures = (
        Measure("read_committed consume", "MB/s", more_is_better=True, ratio=1.0),
        Measure("read_committed consume records", "records/s", more_is_better=True, ratio=1.0),
        Measure("broker CPU, read_committed consume", "s/GB", more_is_better=False),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        tool = bench.rdkafka_performance
        with running(contestant, bench.jars, SETTINGS, bench.prefix) as broker:
            first_produce(broker.address, "load", 0)
            committed = write(broker.address, "load", bench.amount(TRANSACTIONS))
            rdkafka.consume(tool, broker.address, "load", committed, *COMMITTED_ONLY)
            before = broker.child.cpu_seconds()
            reads = [
                rdkafka.consume(tool, broker.address, "load", committed, *COMMITTED_ONLY)
                for _ in range(READS)
            ]
            cpu_seconds = broker.child.cpu_seconds() - before
        size_gb = READS * committed * RECORD_BYTES / 1e9
        values = (*(median(column) for column in zip(*reads, strict=True)), cpu_seconds / size_gb)
        return dict(zip((measure.name for measure in self.measures), values, strict=True))
