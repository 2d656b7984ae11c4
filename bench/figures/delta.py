"""Kafka to Delta with Spark: `ottla.pipelines` beside two jobs by hand, on each broker in turn.

`delta_plain` defines the plain job and `delta_tuned` the tuned one; the share is that of the tuned
job. The values are medians over the batches of one query, without the first ones, in which the JVM
warms up.
"""

import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from types import MappingProxyType
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench import rdkafka
from bench.brokers import running
from bench.figures.comparison import Comparison, Taken
from bench.figures.delta_job import row
from bench.measure import Bench, ClientError, Measure
from ottla.pipelines.rejects.rejects import MAX_WAITING_BATCHES
from ottla.pipelines.spark import cache
from ottla.pipelines.spark.class_archive import OFF

PLAIN, TUNED, OTTLA = "plain", "tuned", "ottla"
WAYS = {PLAIN: PLAIN, TUNED: TUNED, OTTLA: OTTLA}
CLEAN, BAD = "clean", "bad"
JOB_SECONDS = 600.0
FLUSH_SECONDS = 120.0
NOTE = "x" * 200


def fill(
    address: str, topic: str, rows: int, partitions: int, bad_rows_every: int | None = None
) -> None:
    """Write JSON rows of about 250 B, spread over the partitions. Raises ClientError."""
    producer = Producer({"bootstrap.servers": address, "queue.buffering.max.messages": 1_000_000})
    for number in range(rows):
        bad = bad_rows_every is not None and number % bad_rows_every == bad_rows_every // 2
        value = b"not JSON" if bad else row(number, NOTE)
        while True:
            try:
                producer.produce(topic, value, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(FLUSH_SECONDS):
        raise ClientError(f"not all rows of {topic} were taken")


def create(address: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(FLUSH_SECONDS)


def run_job(
    job: str,
    scenario: dict[str, Any],
    address: str,
    topic: str,
    environ: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Run the Spark program to its end; return its results. `environ` is added to its environment.

    Raises ClientError.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = ["env", *(f"{name}={value}" for name, value in environ.items())]
        program += [sys.executable, "-m", "bench.figures.delta_job", job]
        program += [json.dumps(scenario), address, topic, folder]
        output = rdkafka.run(program, JOB_SECONDS)
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def warm(found: dict[str, Any], first: int) -> list[tuple[int, int, float]]:
    """The batches after the warm-up: rows, ms, CPU seconds at the end.

    Raises ClientError if there are too few.
    """
    batches: list[tuple[int, int, float]] = found["batches"][first:]
    if len(batches) < 2:
        raise ClientError(f"only {len(found['batches'])} batches, of which {first} warm up")
    return batches


def rate(found: dict[str, Any], first: int) -> float:
    """Rows a second: the median over the batches."""
    return median(rows * 1000 / ms for rows, ms, _ in warm(found, first))


def whole_rate(found: dict[str, Any], first: int) -> float:
    """Rows a second over all batches together."""
    batches = warm(found, first)
    return sum(rows for rows, _, _ in batches) * 1000 / sum(ms for _, ms, _ in batches)


def batch_time(found: dict[str, Any], first: int) -> float:
    return median(ms for _, ms, _ in warm(found, first))


def cpu_us(found: dict[str, Any], first: int) -> float:
    """CPU time a row, of Python and the JVM, over the batches after the warm-up."""
    batches = warm(found, first)
    before: float = found["batches"][first - 1][2] if first else found["cpu_before"]
    return (batches[-1][2] - before) * 1e6 / sum(rows for rows, _, _ in batches)


@contextmanager
def broker_of(contestant: str, bench: Bench, partitions: int) -> Iterator[str]:
    """The address of a broker whose topics get this many partitions."""
    settings = {"num.partitions": str(partitions)}
    with running(contestant, bench.jars, settings, prefix=bench.prefix) as broker:
        yield broker.address


class Batches:
    """All rows of a topic in batches of one size."""

    runs = 3

    def __init__(self, name: str, rows: int, batch: int, warm_up: int, goal: float) -> None:
        self.name, self._rows, self._batch, self._warm_up = name, rows, batch, warm_up
        self._comparison = Comparison(name, "rows/s", goal, WAYS, more_is_better=True, cpu_goal=1.0)
        self.measures = self._comparison.measures
        self.settings = (
            f"{rows:,} JSON rows of about 250 B in 2 partitions, {batch:,} a batch, local[2],"
            f" availableNow; median over the batches without the first {warm_up}"
        )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        rows = max(bench.amount(self._rows), self._batch * (self._warm_up + 2))
        with broker_of(contestant, bench, 2) as address:
            fill(address, "rows", rows, 2)

            def run(job: str) -> Taken:
                found = run_job(job, {"max_rows": self._batch}, address, "rows")
                if found["rows"] != rows:
                    raise ClientError(f"the table has {found['rows']} rows of {rows}")
                return Taken(rate(found, self._warm_up), cpu_us(found, self._warm_up))

            return self._comparison.measure(run)


class Backfill:
    """All rows of a topic in one batch, in a program that has just started."""

    name = "delta-backfill"
    runs = 3
    rows = 2_000_000
    settings = (
        f"{rows:,} JSON rows of about 250 B in 2 partitions, one batch, local[2], availableNow;"
        " from the start of the query to its end; CPU: of the whole program, Python's and the JVM's"
        " start included"
    )

    def __init__(self) -> None:
        self._comparison = Comparison(
            self.name, "rows/s", 1.0, WAYS, more_is_better=True, cpu_goal=1.0
        )
        self.measures = self._comparison.measures

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        rows = bench.amount(self.rows)
        with broker_of(contestant, bench, 2) as address:
            fill(address, "rows", rows, 2)

            def run(job: str) -> Taken:
                found = run_job(job, {}, address, "rows")
                if found["rows"] != rows or len(found["batches"]) != 1:
                    told = f"{found['rows']} rows of {rows}, {len(found['batches'])} batches"
                    raise ClientError(f"the table has {told}")
                # Of the whole program: a job that loads classes before the query starts would
                # otherwise pay for them outside of the figure.
                return Taken(rows / found["seconds"], found["batches"][-1][2] * 1e6 / rows)

            return self._comparison.measure(run)


class Live:
    """Rows that arrive while the query runs: the time of a batch, plain and Ottla's."""

    runs = 3

    def __init__(self, name: str, scenario: dict[str, Any], warm_up: int, settings: str) -> None:
        self.name, self.settings = name, settings
        self._scenario, self._warm_up = scenario, warm_up
        # The goal, twice as fast, is half the time.
        self._comparison = Comparison(f"{name}, batch", "ms", 0.5, WAYS, more_is_better=False)
        self.measures = self._comparison.measures

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        scenario = self._scenario
        if bench.quick:
            scenario = {**scenario, "rows": scenario["rows"] // 2}
        partitions = scenario["partitions"]
        with broker_of(contestant, bench, partitions) as address:

            def run(job: str) -> Taken:
                topic = f"rows-{job}"
                create(address, topic, partitions)
                found = run_job(job, scenario, address, topic)
                return Taken(batch_time(found, self._warm_up))

            return self._comparison.measure(run)


class BadRows:
    """One row in each batch does not parse; the same without it, both with ottla.pipelines."""

    name = "delta-bad-row"
    # An even number: a trend of the machine falls on both sides alike.
    runs = 2
    batches, warm_up = 2 * MAX_WAITING_BATCHES, MAX_WAITING_BATCHES
    settings = (
        f"{batches} batches of 100,000 JSON rows of about 250 B in 2 partitions, of which one is"
        " not JSON, or none, in an order that alternates from run to run; ottla.pipelines,"
        " local[2];"
        f" all batches together without the first {warm_up}. The rejected rows of up to"
        f" {MAX_WAITING_BATCHES} batches share a commit: the first, which makes the table of"
        " rejected rows, is part of the warm-up, the second is measured"
    )

    def __init__(self) -> None:
        ways = {"clean batches": CLEAN, "one bad row a batch": BAD}
        self._comparison = Comparison(
            "delta", "rows/s", 0.9, ways, more_is_better=True, share="bad row, share"
        )
        self.measures = self._comparison.measures

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        batch = bench.amount(100_000)
        with broker_of(contestant, bench, 2) as address:
            for topic, bad_rows_every in ((CLEAN, None), (BAD, batch)):
                fill(address, topic, self.batches * batch, 2, bad_rows_every)

            def run(topic: str) -> Taken:
                found = run_job(OTTLA, {"max_rows": batch}, address, topic)
                expected = self.batches * (batch - (topic == BAD))
                if found["rows"] != expected:
                    raise ClientError(f"the table has {found['rows']} rows of {expected}")
                return Taken(whole_rate(found, self.warm_up))

            return self._comparison.measure(run)


class ColdBrokers:
    """Brokers with the rows of a cold program, whose class archive was made by an earlier one."""

    def __init__(self) -> None:
        self._archive_is_made = False

    @contextmanager
    def broker_of(self, contestant: str, bench: Bench) -> Iterator[str]:
        """The address of one. Raises ClientError."""
        with broker_of(contestant, bench, 2) as address:
            fill(address, "rows", 100_000, 2)
            if not self._archive_is_made:
                make_archive(address)
                self._archive_is_made = True
            yield address


class Cold:
    """The whole program, from its start to the first 100,000 rows in the table."""

    name = "delta-cold"
    runs = 3
    settings = (
        "100,000 JSON rows of about 250 B in 2 partitions; the seconds of the whole program, Python"
        " and JVM included, local[2]; the jars are in Ivy's cache, which the plain job asks, and in"
        " the class path of the tuned job; Ottla's class archive was made by an earlier program"
    )

    def __init__(self) -> None:
        self._comparison = Comparison("delta, cold start", "s", 0.6, WAYS, more_is_better=False)
        self.measures = self._comparison.measures
        self._brokers = ColdBrokers()

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        with self._brokers.broker_of(contestant, bench) as address:
            return self._comparison.measure(lambda job: Taken(whole_seconds(job, address)))


class ClassArchive:
    """The whole program with Ottla's class archive and without it: it stays where it saves 3 s."""

    name = "delta-cold-archive"
    runs = 3
    settings = (
        "the program of `delta-cold`, in turns with `OTTLA_CLASS_ARCHIVE=off` and with the class"
        " archive, which was made by an earlier program"
    )
    _without = "delta, cold start without the class archive"
    _with = "delta, cold start with it"
    _saved = "delta, saved by the class archive"
    measures = (
        Measure(_without, "s", more_is_better=False),
        Measure(_with, "s", more_is_better=False),
        Measure(_saved, "s", more_is_better=True, limit=3.0),
    )

    def __init__(self) -> None:
        self._brokers = ColdBrokers()
        self._turns = itertools.cycle((({OFF: "off"}, {}), ({}, {OFF: "off"})))

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        with self._brokers.broker_of(contestant, bench) as address:
            seconds = {
                self._without if environ else self._with: whole_seconds(OTTLA, address, environ)
                for environ in next(self._turns)
            }
            return seconds | {self._saved: seconds[self._without] - seconds[self._with]}


def whole_seconds(
    job: str, address: str, environ: Mapping[str, str] = MappingProxyType({})
) -> float:
    """Seconds of a program with 100,000 rows, from its start to its end. Raises ClientError."""
    began = time.monotonic()
    found = run_job(job, {}, address, "rows", environ)
    if found["rows"] != 100_000:
        raise ClientError(f"the table has {found['rows']} rows of 100,000")
    return time.monotonic() - began


def make_archive(address: str) -> None:
    """Run the program twice: the first run resolves the jars, the second makes the archive.

    Raises ClientError if there is no archive after a minute: this Java may not support it.
    """
    folder = cache.folder(os.environ)
    for _ in range(2):
        run_job(OTTLA, {}, address, "rows")
        until = time.monotonic() + 60
        while list(folder.glob("archive-*.new")) and time.monotonic() < until:
            time.sleep(0.5)
    if not list(folder.glob("archive-*.jsa")):
        raise ClientError(f"no class archive was made in {folder}")


BULK = Batches("delta-bulk", 800_000, 100_000, 3, 1.3)
SMALL = Batches("delta-small", 40_000, 1_000, 15, 1.5)
STEADY = Live(
    "delta-steady",
    {"interval": "1 second", "rows": 20_000, "partitions": 2, "burst": 25, "pause_ms": 50},
    8,
    "500 rows/s of about 150 B to 2 partitions for 40 s, a batch each second, local[2]; median"
    " over the batches without the first 8",
)
BURSTS = Live(
    "delta-bursts",
    {"interval": None, "rows": 750, "partitions": 6, "burst": 30, "pause_ms": 0, "waits": True},
    10,
    "25 bursts of 30 rows over 6 partitions, each when the one before is delivered, local[2];"
    " median over the batches without the first 10",
)
