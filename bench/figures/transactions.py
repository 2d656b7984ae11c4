"""Transactional produce: records/s and the time of a commit, with short and long transactions."""

import json
import sys
from typing import NamedTuple

from bench import rdkafka
from bench.brokers import running
from bench.clusters import RunningCluster
from bench.figures.latency import percentile
from bench.figures.start import first_produce
from bench.measure import Bench, Measure
from bench.transacting import RECORD_BYTES

WARM_UP_SECONDS = 5
SECONDS = 20
SETTINGS = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
CLUSTER_SETTINGS = {
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}
MEGA = 1_000_000


class Load(NamedTuple):
    """What one run of the producer committed."""

    mb_per_s: float
    p50_ms: float
    p99_ms: float
    megabytes: float


def load(bench: Bench, address: str, commit_ms: int) -> Load:
    """Run the producer against topic `load`. Raises ClientError."""
    warm_up, seconds = (1, 3) if bench.quick else (WARM_UP_SECONDS, SECONDS)
    command = [sys.executable, "-m", "bench.transacting", address, "load", str(commit_ms)]
    found = json.loads(rdkafka.run([*command, str(warm_up), str(seconds)]).splitlines()[-1])
    commits_ms = found["commits_ms"]
    megabytes = found["records"] * RECORD_BYTES / MEGA
    return Load(
        megabytes / found["seconds"],
        percentile(commits_ms, 0.5),
        percentile(commits_ms, 0.99),
        megabytes,
    )


def settings(commit_ms: int) -> str:
    return (
        f"a transactional producer of confluent-kafka with librdkafka's defaults: records of"
        f" {RECORD_BYTES} B to one partition are queued for {commit_ms} ms, then flushed and"
        f" committed, for {SECONDS} s after {WARM_UP_SECONDS} s to warm up; the time of a commit is"
        " that of EndTxn"
    )


class Transactions:
    """One broker."""

    runs = None

    def __init__(self, commit_ms: int) -> None:
        self.name = f"transactions-{commit_ms}ms"
        self.commit_ms = commit_ms
        self.settings = settings(commit_ms)
        label = f"transactions of {commit_ms} ms"
        self.measures = (
            Measure(f"produce, {label}", "MB/s", more_is_better=True, ratio=1.0),
            Measure(f"commit p50, {label}", "ms", more_is_better=False, ratio=1.0),
            Measure(f"commit p99, {label}", "ms", more_is_better=False, ratio=1.0),
            Measure(f"broker CPU, {label}", "s/GB", more_is_better=False),
        )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        with running(contestant, bench.jars, SETTINGS, bench.prefix) as broker:
            first_produce(broker.address, "load", 0)
            before = broker.child.cpu_seconds()
            found = load(bench, broker.address, self.commit_ms)
            cpu_seconds = broker.child.cpu_seconds() - before
        values = (
            *(found.mb_per_s, found.p50_ms, found.p99_ms),
            cpu_seconds / found.megabytes * 1000,
        )
        return dict(zip((measure.name for measure in self.measures), values, strict=True))


class ClusterTransactions:
    """Three brokers; the records, the offsets and the transactions have three replicas each."""

    runs = None

    def __init__(self, commit_ms: int) -> None:
        self.name = f"cluster-transactions-{commit_ms}ms"
        self.commit_ms = commit_ms
        self.settings = f"three brokers, three replicas; else as transactions-{commit_ms}ms"
        label = f"replicated transactions of {commit_ms} ms"
        self.measures = (
            Measure(f"produce, {label}", "MB/s", more_is_better=True, ratio=1.0),
            Measure(f"commit p50, {label}", "ms", more_is_better=False, ratio=1.0),
            Measure(f"commit p99, {label}", "ms", more_is_better=False, ratio=1.0),
        )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        prefix = bench.prefix
        with RunningCluster(contestant, bench.jars, CLUSTER_SETTINGS, prefix) as cluster:
            cluster.create_topic("load")
            found = load(bench, cluster.address, self.commit_ms)
        values = (found.mb_per_s, found.p50_ms, found.p99_ms)
        return dict(zip((measure.name for measure in self.measures), values, strict=True))
