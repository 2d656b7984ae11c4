"""End-to-end latency: from the call of the producer until the consumer has the record."""

import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import rdkafka
from bench.brokers import running
from bench.clusters import RunningCluster
from bench.figures.start import first_produce
from bench.measure import Bench, ClientError, Measure

RATE = 1000
CLUSTER_RATE = 200
"""Three brokers share the machine: at 1000 a second, Apache Kafka's would queue for seconds."""
SECONDS = 15
WARM_UP = 3
CLIENT_WAIT_SECONDS = 120


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that is at least as large as `share` of all values."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


class Latency:
    """A steady stream of records at a moderate rate, so that no queue forms."""

    name = "latency"
    runs = None
    settings = (
        f"rdkafka_performance -l, {RATE} records/s of 1000 B for {SECONDS} s (the first {WARM_UP} s"
        " left out), acks=all, linger.ms=0, 1 partition, consumer with its defaults"
    )
    measures = (
        Measure("latency p50", "ms", more_is_better=False, ratio=1.0),
        Measure("latency p99", "ms", more_is_better=False, ratio=1.0),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        with running(contestant, bench.jars, prefix=bench.prefix) as broker:
            first_produce(broker.address, "stream", 0)
            found = stream(bench, broker.address, RATE)
        return dict(zip((measure.name for measure in self.measures), found, strict=True))


class ClusterLatency:
    """The same with three replicas: consumers get a record once the followers have it."""

    name = "cluster-latency"
    runs = None
    settings = (
        f"three brokers, one partition with three replicas, {CLUSTER_RATE} records/s; else as"
        f" {Latency.name}"
    )
    measures = (
        Measure("replicated latency p50", "ms", more_is_better=False, ratio=1.0),
        Measure("replicated latency p99", "ms", more_is_better=False, ratio=1.0),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        with RunningCluster(contestant, bench.jars, prefix=bench.prefix) as cluster:
            cluster.create_topic("stream")
            found = stream(bench, cluster.address, CLUSTER_RATE)
        return dict(zip((measure.name for measure in self.measures), found, strict=True))


def stream(bench: Bench, address: str, rate: int) -> tuple[float, float]:
    """Send the stream to partition 0 of topic `stream` and read it: p50 and p99 in ms."""
    tool = str(bench.rdkafka_performance)
    count = rate * (SECONDS // 2 if bench.quick else SECONDS)
    both = ["-l", "-t", "stream", "-p", "0", "-c", str(count), "-b", address]
    with tempfile.TemporaryDirectory() as scratch:
        times = Path(scratch) / "latencies"
        consumer = subprocess.Popen(
            [tool, "-C", *both, "-o", "end", "-A", str(times)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            time.sleep(2)
            producer = [tool, "-P", *both, "-s", "1000", "-r", str(rate), "-a", "-1"]
            rdkafka.produced(rdkafka.run([*producer, "-X", "linger.ms=0"]))
            consumer.wait(CLIENT_WAIT_SECONDS)
        except subprocess.TimeoutExpired as fault:
            raise ClientError("the consumer did not get all records") from fault
        finally:
            consumer.kill()
            consumer.wait()
        micros = [float(line) for line in times.read_text().split()]
    steady = [value / 1000 for value in micros[WARM_UP * rate :]]
    return percentile(steady, 0.5), percentile(steady, 0.99)
