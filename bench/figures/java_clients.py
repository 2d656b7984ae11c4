"""Produce and consume with the Java clients: Kafka's ProducerPerformance, ConsumerPerformance."""

import re

from components.apache_kafka import KafkaJars

from bench import rdkafka
from bench.brokers import Broker, running
from bench.figures.start import first_produce
from bench.measure import Bench, ClientError, Measure

SIZES = (("1 KB", 1000, 400_000), ("100 B", 100, 2_000_000))
PRODUCED = re.compile(r"(\d+) records sent, ([\d.]+) records/sec")


def produce(jars: KafkaJars, broker: Broker, topic: str, size: int, count: int) -> float:
    """MB/s of ProducerPerformance."""
    command = jars.command(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--bootstrap-server", broker.address, "--topic", topic, "--num-records", str(count)),
        *("--record-size", str(size), "--throughput", "-1", "--command-property", "acks=all"),
    )
    found = PRODUCED.findall(rdkafka.run(command))
    if not found or int(found[-1][0]) != count:
        raise ClientError(f"ProducerPerformance did not send {count} records")
    return float(found[-1][1]) * size / 1_000_000


def consume(jars: KafkaJars, broker: Broker, topic: str, size: int, count: int) -> float:
    """MB/s of ConsumerPerformance, without the time to join its group."""
    command = jars.command(
        "org.apache.kafka.tools.ConsumerPerformance",
        *("--bootstrap-server", broker.address, "--topic", topic, "--num-records", str(count)),
    )
    rows = [line.split(",") for line in rdkafka.run(command).splitlines() if line[:2] == "20"]
    if not rows or int(rows[-1][4]) < count:
        raise ClientError(f"ConsumerPerformance did not get {count} records")
    return float(rows[-1][9]) * size / 1_000_000


class JavaClients:
    """One partition; each run starts a new JVM for each client and includes its warm-up."""

    name = "java-clients"
    runs = None
    settings = (
        "ProducerPerformance acks=all, ConsumerPerformance (fetch.MB.sec); "
        + ", ".join(f"{count:,} records of {size} B" for _, size, count in SIZES)
        + "; the Java clients' defaults else; clients with -Xmx512m"
    )
    measures = tuple(
        Measure(f"Java {verb} {label}", "MB/s", more_is_better=True, ratio=1.0)
        for label, _, _ in SIZES
        for verb in ("produce", "consume")
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        assert bench.jars is not None
        found = {}
        with running(contestant, bench.jars, prefix=bench.prefix) as broker:
            for label, size, full in SIZES:
                count = bench.amount(full)
                topic = f"java-{size}"
                first_produce(broker.address, topic, 0)
                rate = produce(bench.jars, broker, topic, size, count)
                found[f"Java produce {label}"] = rate
                found[f"Java consume {label}"] = consume(bench.jars, broker, topic, size, count)
        return found
