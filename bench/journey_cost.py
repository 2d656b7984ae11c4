"""Measures the cost of the journey, with it on and off in turn: `python -m bench.journey_cost`.

The journey must cost less than 2 % of producing and fetching, and its disk space must be bounded.

The whole broker: each run starts a broker, warms it up, writes to one partition with librdkafka's
rdkafka_performance, and reads all of it READS times. Besides MB/s it measures the broker's CPU
seconds per GB, which other work on the machine disturbs less, and the size of the timeline files
per second of load.

The append alone, in this process: CPU seconds of `Partition.append` with flushes and the writer
thread, but without network and protocol. This is the strictest and steadiest measure: a whole
produce request costs several times an append.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from bench import machine, rdkafka
from bench.brokers import Broker, Ottla, running
from bench.figures.start import first_produce
from ottla.controller.image import PartitionState
from ottla.log.config import LogConfig
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.replica.partition import Partition
from ottla.replica.partition_host import PartitionHost
from ottla.runtime.clock import SystemClock
from ottla.timelines.folder import CAP_BYTES
from ottla.timelines.recorder import TimelineRecorder

GB = 1_000_000_000
WARM_UP_BYTES = 100_000_000
PROMISED_PERCENT = 2.0
SETTING = "ottla.journey.enable"
READS = 10
APPENDS = 20_000
APPENDS_A_TURN = 50
BATCH_BYTES = 16_000


class Run(NamedTuple):
    """The values of one run."""

    mb_per_s: float
    cpu_s_per_gb: float
    timeline_bytes_per_s: float
    fetch_mb_per_s: float
    fetch_cpu_s_per_gb: float


def measure(tool: Path, enabled: bool, size: int, load_bytes: int) -> Run:
    """One run with the journey on or off, records of `size` bytes."""
    with running("Ottla", None, {SETTING: str(enabled).lower()}) as broker:
        first_produce(broker.address, "warm", 0)
        rdkafka.produce(tool, broker.address, "warm", WARM_UP_BYTES // size, size)
        first_produce(broker.address, "load", 0)
        count = load_bytes // size
        cpu_before, began = broker.child.cpu_seconds(), time.monotonic()
        mb_per_s, _ = rdkafka.produce(tool, broker.address, "load", count, size)
        cpu, took = broker.child.cpu_seconds() - cpu_before, time.monotonic() - began
        # The recorder writes the last steps within a second.
        time.sleep(1.5)
        cpu_before = broker.child.cpu_seconds()
        speeds = [rdkafka.consume(tool, broker.address, "load", count)[0] for _ in range(READS)]
        fetched_gb = READS * count * size / GB
        return Run(
            mb_per_s,
            cpu / (count * size / GB),
            timeline_bytes(broker) / took,
            statistics.median(speeds),
            (broker.child.cpu_seconds() - cpu_before) / fetched_gb,
        )


def timeline_bytes(broker: Broker) -> int:
    assert isinstance(broker, Ottla)
    folder = broker.folder / "data" / "load-0"
    return sum(file.stat().st_size for file in folder.glob("*.timeline"))


def difference(on: list[float], off: list[float]) -> float:
    """By how many percent the median with the journey exceeds the one without."""
    return (statistics.median(on) / statistics.median(off) - 1) * 100


def compare(tool: Path, size: int, runs: int, load_bytes: int) -> str:
    """Run both in turn, `runs` times each; return the results in a few lines."""
    figures: dict[bool, list[Run]] = {True: [], False: []}
    for number in range(runs):
        # The order alternates, so that other work on the machine affects both.
        for enabled in (True, False) if number % 2 else (False, True):
            figures[enabled].append(measure(tool, enabled, size, load_bytes))
            print(".", end="", flush=True)
    print()
    on, off = figures[True], figures[False]
    speed = difference([run.mb_per_s for run in on], [run.mb_per_s for run in off])
    cpu = difference([run.cpu_s_per_gb for run in on], [run.cpu_s_per_gb for run in off])
    fetch = difference([run.fetch_mb_per_s for run in on], [run.fetch_mb_per_s for run in off])
    fetch_cpu = difference(
        [run.fetch_cpu_s_per_gb for run in on], [run.fetch_cpu_s_per_gb for run in off]
    )
    disk = statistics.median(run.timeline_bytes_per_s for run in on)
    return "\n".join(
        (
            f"{size} B records, {runs} runs each of {load_bytes / GB:g} GB:",
            f"  off {said(off)}",
            f"  on  {said(on)}",
            f"  difference: throughput {speed:+.1f} %, broker CPU {cpu:+.1f} %"
            f" (promised: less than {PROMISED_PERCENT:g} % slower)",
            f"  fetch: throughput {fetch:+.1f} %, broker CPU {fetch_cpu:+.1f} %",
            f"  timelines: {disk:.0f} bytes for each second of load,"
            f" at most {CAP_BYTES:,} bytes a segment",
        )
    )


def said(runs: list[Run]) -> str:
    """The median and the range of the runs."""
    speeds = sorted(run.mb_per_s for run in runs)
    cpu = statistics.median(run.cpu_s_per_gb for run in runs)
    return (
        f"{statistics.median(speeds):7.1f} MB/s ({speeds[0]:.1f} to {speeds[-1]:.1f}),"
        f" {cpu:.3f} CPU seconds a GB;"
        f" fetch {statistics.median(run.fetch_mb_per_s for run in runs):.1f} MB/s,"
        f" {statistics.median(run.fetch_cpu_s_per_gb for run in runs):.3f} CPU seconds a GB"
    )


async def append(enabled: bool) -> float:
    """Microseconds of CPU for each append of one batch, writer thread and flushes included."""
    clock = SystemClock()
    journey = TimelineRecorder(clock, enabled=enabled)
    batch = build_batch([Record(0, clock.now_ms(), None, bytes(BATCH_BYTES))])
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder:
        log = open_log(f"{folder}/load-0", LogConfig(), OpenFiles(), now_ms=clock.now_ms())
        partition = Partition(
            "load",
            0,
            uuid4(),
            log,
            PartitionHost(1, clock, journey, write_failed=lambda partition, error: None),
        )
        partition.update(PartitionState(1, 0, (1,), (1,), 0), clock.now_ms())
        journey.start()
        began = time.process_time()
        for _ in range(APPENDS // APPENDS_A_TURN):
            for _ in range(APPENDS_A_TURN):
                partition.appends.append(batch, "rdkafka", to_all=True)
            await asyncio.sleep(0)
        took = time.process_time() - began
        await journey.close()
        log.close()
    return took / APPENDS * 1e6


def compare_appends(runs: int) -> str:
    """The append alone, with and without the journey in turn; the first of each is a warm-up."""
    for enabled in (True, False):
        asyncio.run(append(enabled))
    costs: dict[bool, list[float]] = {True: [], False: []}
    for number in range(runs):
        for enabled in (True, False) if number % 2 else (False, True):
            costs[enabled].append(asyncio.run(append(enabled)))
    # The minimum of each: other work on the machine can only add time.
    off, on = min(costs[False]), min(costs[True])
    more = (on / off - 1) * 100
    return (
        f"The append of a batch of {BATCH_BYTES // 1000} KB alone: {off:.1f} microseconds of CPU,"
        f" with the journey {on:.1f} ({more:+.1f} %)"
    )


def main() -> None:
    """Measure 1 KB and 100 B records and print the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.journey_cost", description=__doc__)
    parser.add_argument("--runs", type=int, default=7, help="runs of each (default: 7)")
    parser.add_argument(
        "--gb", type=float, default=1.0, help="GB a run at 1 KB; half of it at 100 B"
    )
    given = parser.parse_args()
    tool = rdkafka.built()
    for name, value in machine.describe().items():
        print(f"{name}: {value}")
    print(compare_appends(given.runs))
    for size, share in ((1000, 1.0), (100, 0.5)):
        print(compare(tool, size, given.runs, int(given.gb * share * GB)))


if __name__ == "__main__":
    main()
