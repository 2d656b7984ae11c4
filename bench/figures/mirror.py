"""`ottla mirror` beside MirrorMaker 2: the same topic of the same source into the same target."""

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from components.child import Child
from components.mirror_maker import MirrorMaker
from confluent_kafka import OFFSET_END, Consumer, KafkaException, Producer, TopicPartition

from bench.brokers import Broker, running
from bench.figures.delta import create
from bench.figures.latency import percentile
from bench.measure import Bench, ClientError, Measure

PARTITIONS = 4
RECORDS = 1_000_000
RECORD_BYTES = 1000
VALUES = 1000
"""Different ones, so that no batch compresses to nothing."""
LAG_SECONDS = 10.0
LAG_RECORDS_A_SECOND = 2000
WAIT_SECONDS = 300.0
LOOK_SECONDS = 0.05
TOPIC = "load"

PLAIN, EXACT, OTTLA = "MirrorMaker 2", "MirrorMaker 2 exactly once", "ottla mirror"
PREFIXES = {PLAIN: "plain.", EXACT: "exact.", OTTLA: "ottla."}
"""Of the topic at the target."""


@dataclass(frozen=True)
class Taken:
    """What one mirror took. CPU times are seconds a GB."""

    mb_per_s: float
    peak_mb: float
    cpu: float
    source_cpu: float
    target_cpu: float
    lag_ms: list[float]


def values() -> list[bytes]:
    """Hexadecimal digits: they compress to half of it, as text does."""
    chance = Random(1)
    return [chance.randbytes(RECORD_BYTES // 2).hex().encode() for _ in range(VALUES)]


def fill(address: str, count: int) -> None:
    """Write the records, spread over the partitions. Raises ClientError."""
    producer = Producer(
        {"bootstrap.servers": address, "queue.buffering.max.messages": 100_000, "log_level": 0}
    )
    some = values()
    for number in range(count):
        while True:
            try:
                producer.produce(TOPIC, some[number % VALUES], partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(WAIT_SECONDS):
        raise ClientError("not all records were taken")


class Ends:
    """The ends of a topic's partitions, asked again and again: of committed records, or of all."""

    def __init__(self, address: str, topic: str, isolation: str = "read_committed") -> None:
        self._topic = topic
        settings = {"bootstrap.servers": address, "group.id": "ends", "isolation.level": isolation}
        self._consumer = Consumer({**settings, "log_level": 0})

    def total(self) -> int:
        """0 as long as there is no such topic."""
        try:
            found = [
                self._consumer.get_watermark_offsets(TopicPartition(self._topic, each), timeout=10)
                for each in range(PARTITIONS)
            ]
        except KafkaException:
            return 0
        return sum(end for _, end in found)

    def wait(self, count: int, child: Child) -> int:
        """Wait until there are so many; return how many. Raises ClientError."""
        limit = time.monotonic() + WAIT_SECONDS
        while (found := self.total()) < count:
            if child.process.poll() is not None:
                raise ClientError(f"the mirror ended:\n{child.last_words()}")
            if time.monotonic() > limit:
                raise ClientError(
                    f"{found} of {count} records within {WAIT_SECONDS:.0f} s:\n{child.last_words()}"
                )
            time.sleep(LOOK_SECONDS)
        return found

    def close(self) -> None:
        self._consumer.close()


@contextmanager
def steady_load(address: str) -> Iterator[None]:
    """Records at a steady rate, until the end."""
    stop = threading.Event()
    some = values()

    def produce() -> None:
        producer = Producer({"bootstrap.servers": address, "log_level": 0})
        began, sent = time.monotonic(), 0
        while not stop.wait(0.005):
            wanted = (time.monotonic() - began) * LAG_RECORDS_A_SECOND
            while sent < wanted:
                producer.produce(TOPIC, some[sent % VALUES], partition=sent % PARTITIONS)
                sent += 1
            producer.poll(0)
        producer.flush(WAIT_SECONDS)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def lags(source: str, target: str, topic: str) -> list[float]:
    """From a record's time until a reader of committed records has it, in ms."""
    settings = {
        "bootstrap.servers": target,
        "group.id": f"lag-{topic}",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 10,
        "log_level": 0,
    }
    consumer: Any = Consumer(settings)
    consumer.assign([TopicPartition(topic, each, OFFSET_END) for each in range(PARTITIONS)])
    consumer.consume(1, 1.0)
    found: list[float] = []
    with steady_load(source):
        until = time.monotonic() + LAG_SECONDS
        while time.monotonic() < until:
            for record in consumer.consume(500, 0.01):
                if record.error() is None:
                    found.append(time.time() * 1000 - record.timestamp()[1])
    consumer.close()
    if len(found) < LAG_RECORDS_A_SECOND:
        raise ClientError(f"only {len(found)} records came through")
    return found


def run(start: Callable[[], Child], source: Broker, target: Broker, topic: str) -> Taken:
    """Start a mirror with all records before it; then measure its lag under a steady load."""
    read, written = Ends(source.address, TOPIC), Ends(target.address, topic)
    begun = Ends(target.address, topic, "read_uncommitted")
    count = read.total()
    child = start()
    processes = (child, source.child, target.child)
    try:
        # From its first records on: its start and the forming of groups do not count. They need
        # not be committed yet, or all of them would be in the first transaction.
        first = begun.wait(1, child)
        began, before = time.monotonic(), [each.cpu_seconds() for each in processes]
        written.wait(count, child)
        seconds = time.monotonic() - began
        used = [each.cpu_seconds() - at for each, at in zip(processes, before, strict=True)]
        peak_mb = child.peak_rss_bytes() / 1e6
        lag_ms = lags(source.address, target.address, topic)
    finally:
        child.stop()
        for ends in (read, begun, written):
            ends.close()
    size_gb = (count - first) * RECORD_BYTES / 1e9
    cpu, source_cpu, target_cpu = (each / size_gb for each in used)
    rate = size_gb * 1000 / seconds
    return Taken(rate, peak_mb, cpu, source_cpu, target_cpu, lag_ms)


class Mirror:
    """One source and one target of the contestant; each mirror writes a topic of its own."""

    name = "mirror"
    runs = 3
    settings = (
        f"{RECORDS:,} records of {RECORD_BYTES} B (hexadecimal digits) in {PARTITIONS} partitions,"
        " from one broker to another, each mirror with its defaults, without its start;"
        f" MirrorMaker 2 with the heap of its start script; lag: {LAG_SECONDS:.0f} s of"
        f" {LAG_RECORDS_A_SECOND:,} records/s, from a record's time to a read_committed consumer."
        " The shares are over MirrorMaker 2 with its defaults, which is at least once"
    )
    measures = (
        *(Measure(f"{way}", "MB/s", more_is_better=True) for way in PREFIXES),
        Measure("mirror, share", "×", more_is_better=True, limit=2.0),
        *(Measure(f"{way}, memory", "MB", more_is_better=False) for way in PREFIXES),
        Measure("mirror, memory share", "×", more_is_better=False, limit=0.2),
        *(
            Measure(f"{way}, {what}", unit, more_is_better=False)
            for what, unit in (
                ("CPU", "s/GB"),
                ("source CPU", "s/GB"),
                ("target CPU", "s/GB"),
                ("lag p50", "ms"),
                ("lag p99", "ms"),
            )
            for way in PREFIXES
        ),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        maker = MirrorMaker.fetched()
        with (
            tempfile.TemporaryDirectory(prefix="ottla-bench-") as scratch,
            running(contestant, bench.jars) as source,
            running(contestant, bench.jars, prefix=bench.prefix) as target,
        ):
            create(source.address, TOPIC, PARTITIONS)
            fill(source.address, bench.amount(RECORDS))

            def start(way: str) -> Child:
                folder, prefix = Path(scratch) / way, PREFIXES[way]
                if way == OTTLA:
                    command = [sys.executable, "-m", "ottla", "mirror", "-b", target.address, TOPIC]
                    command += ["--source", source.address, "--prefix", prefix]
                    return Child(command, folder / "mirror.log")
                exactly = {"exactly.once.source.support": "enabled"} if way == EXACT else {}
                alias = prefix.removesuffix(".")
                return maker.start(folder, alias, source.address, target.address, TOPIC, exactly)

            found = {
                way: run(partial(start, way), source, target, f"{prefix}{TOPIC}")
                for way, prefix in PREFIXES.items()
            }
        return values_of(found)


def values_of(found: dict[str, Taken]) -> dict[str, float]:
    """By measure."""
    told: dict[str, float] = {}
    for way, taken in found.items():
        told |= {
            way: taken.mb_per_s,
            f"{way}, memory": taken.peak_mb,
            f"{way}, CPU": taken.cpu,
            f"{way}, source CPU": taken.source_cpu,
            f"{way}, target CPU": taken.target_cpu,
            f"{way}, lag p50": percentile(taken.lag_ms, 0.5),
            f"{way}, lag p99": percentile(taken.lag_ms, 0.99),
        }
    told["mirror, share"] = found[OTTLA].mb_per_s / found[PLAIN].mb_per_s
    told["mirror, memory share"] = found[OTTLA].peak_mb / found[PLAIN].peak_mb
    return told
