"""From EndTxn until a read_committed consumer has the record."""

import threading
import time
from collections.abc import Sequence

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.brokers import running
from bench.clusters import RunningCluster
from bench.figures.latency import percentile
from bench.figures.start import first_produce
from bench.figures.transactions import CLUSTER_SETTINGS, SETTINGS
from bench.measure import Bench, ClientError, Measure

TOPIC = "visible"
TRANSACTIONS = 1_000
WARM_UP = 300
EVERY_SECONDS = 0.015
"""Between two transactions, so that the markers of one are written before the next begins."""
WAIT_SECONDS = 60.0


class Watcher:
    """A consumer in a thread of its own; keeps the time at which it got each record."""

    def __init__(self, address: str) -> None:
        self.seen: dict[bytes, float] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "watcher",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(TOPIC, 0, 0)])
        self._changed = threading.Condition()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Watcher":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._ends.is_set():
            message = self._consumer.poll(0.1)
            now = time.monotonic()
            if message is not None and message.error() is None:
                with self._changed:
                    self.seen[message.value()] = now
                    self._changed.notify_all()

    def wait_for(self, value: bytes) -> float:
        """The time at which the record came. Raises ClientError if it does not."""
        with self._changed:
            if not self._changed.wait_for(lambda: value in self.seen, WAIT_SECONDS):
                raise ClientError(f"a committed record was not visible in {WAIT_SECONDS:.0f} s")
            return self.seen[value]


def visibility_ms(address: str, transactions: int) -> tuple[float, float]:
    """p50 and p99 over this many transactions of one record each, and a warm-up before them."""
    client = {"transactional.id": "committer", "linger.ms": 0, "log_level": 0}
    producer = Producer({"bootstrap.servers": address, **client})
    producer.init_transactions(WAIT_SECONDS)
    took_ms: list[float] = []
    with Watcher(address) as watcher:
        for number in range(WARM_UP + transactions):
            value = b"%d" % number
            producer.begin_transaction()
            producer.produce(TOPIC, value, partition=0)
            producer.flush(WAIT_SECONDS)
            ended = time.monotonic()
            producer.commit_transaction(WAIT_SECONDS)
            took_ms.append((watcher.wait_for(value) - ended) * 1000)
            time.sleep(EVERY_SECONDS)
    steady: Sequence[float] = took_ms[WARM_UP:]
    return percentile(steady, 0.5), percentile(steady, 0.99)


class CommitVisibility:
    """One transaction at a time, and a consumer that waits for it."""

    name = "commit-visibility"
    runs = None
    settings = (
        f"{TRANSACTIONS:,} transactions of one record, {EVERY_SECONDS * 1000:.0f} ms apart, by"
        " confluent-kafka, linger.ms=0; from the call that sends EndTxn until a read_committed"
        f" consumer with librdkafka's defaults has the record; {WARM_UP} before it to warm up"
    )
    measures = (
        Measure("EndTxn to visible p50", "ms", more_is_better=False, ratio=1.0),
        Measure("EndTxn to visible p99", "ms", more_is_better=False, ratio=1.0),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        with running(contestant, bench.jars, SETTINGS, bench.prefix) as broker:
            first_produce(broker.address, TOPIC, 0)
            found = visibility_ms(broker.address, bench.amount(TRANSACTIONS))
        return dict(zip((measure.name for measure in self.measures), found, strict=True))


class ClusterCommitVisibility:
    """The same on three brokers, with three replicas of the records and of the transactions."""

    name = "cluster-commit-visibility"
    runs = None
    settings = f"three brokers, three replicas; else as {CommitVisibility.name}"
    measures = (
        Measure("replicated EndTxn to visible p50", "ms", more_is_better=False, ratio=1.0),
        Measure("replicated EndTxn to visible p99", "ms", more_is_better=False, ratio=1.0),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        prefix = bench.prefix
        with RunningCluster(contestant, bench.jars, CLUSTER_SETTINGS, prefix) as cluster:
            cluster.create_topic(TOPIC)
            found = visibility_ms(cluster.address, bench.amount(TRANSACTIONS))
        return dict(zip((measure.name for measure in self.measures), found, strict=True))
