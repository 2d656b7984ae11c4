"""What the journey costs: `python -m bench.journey_cost`, with it on and off in turn.

Two things are promised: under 2 % of produce throughput, and bounded disk. Each run starts a
broker of its own, warms it, and has librdkafka's rdkafka_performance write to one partition.
Beside MB/s it takes the broker's CPU seconds for each GB, which other work on the machine
disturbs less. The size of the timeline files by the seconds of load says what they take.
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import NamedTuple

from bench import machine, rdkafka
from bench.brokers import Broker, Ottla, Running
from bench.figures.start import first_produce
from ottla.journey.folder import CAP_BYTES

GB = 1_000_000_000
WARM_UP_BYTES = 100_000_000
PROMISED_PERCENT = 2.0
SETTING = "ottla.journey.enable"


class Run(NamedTuple):
    """One broker's figures."""

    mb_per_s: float
    cpu_s_per_gb: float
    timeline_bytes_per_s: float


def measure(tool: Path, enabled: bool, size: int, load_bytes: int) -> Run:
    """One run with the journey on or off, records of `size` bytes."""
    with Running("Ottla", None, {SETTING: str(enabled).lower()}) as broker:
        first_produce(broker.address, "warm", 0)
        rdkafka.produce(tool, broker.address, "warm", WARM_UP_BYTES // size, size)
        first_produce(broker.address, "load", 0)
        count = load_bytes // size
        cpu_before, began = broker.child.cpu_seconds(), time.monotonic()
        mb_per_s, _ = rdkafka.produce(tool, broker.address, "load", count, size)
        cpu, took = broker.child.cpu_seconds() - cpu_before, time.monotonic() - began
        # The last steps are written within a second.
        time.sleep(1.5)
        return Run(mb_per_s, cpu / (count * size / GB), timeline_bytes(broker) / took)


def timeline_bytes(broker: Broker) -> int:
    assert isinstance(broker, Ottla)
    folder = broker.folder / "data" / "load-0"
    return sum(file.stat().st_size for file in folder.glob("*.timeline"))


def difference(on: list[float], off: list[float]) -> float:
    """How much more the median with the journey is, in percent of the one without."""
    return (statistics.median(on) / statistics.median(off) - 1) * 100


def compare(tool: Path, size: int, runs: int, load_bytes: int) -> str:
    """Both in turn, `runs` times each; what came out, in a few lines."""
    figures: dict[bool, list[Run]] = {True: [], False: []}
    for number in range(runs):
        # Who is first changes, so that what the machine does beside is shared.
        for enabled in (True, False) if number % 2 else (False, True):
            figures[enabled].append(measure(tool, enabled, size, load_bytes))
            print(".", end="", flush=True)
    print()
    on, off = figures[True], figures[False]
    speed = difference([run.mb_per_s for run in on], [run.mb_per_s for run in off])
    cpu = difference([run.cpu_s_per_gb for run in on], [run.cpu_s_per_gb for run in off])
    disk = statistics.median(run.timeline_bytes_per_s for run in on)
    return "\n".join(
        (
            f"{size} B records, {runs} runs each of {load_bytes / GB:g} GB:",
            f"  off {said(off)}",
            f"  on  {said(on)}",
            f"  difference: throughput {speed:+.1f} %, broker CPU {cpu:+.1f} %"
            f" (promised: less than {PROMISED_PERCENT:g} % slower)",
            f"  timelines: {disk:.0f} bytes for each second of load,"
            f" at most {CAP_BYTES:,} bytes a segment",
        )
    )


def said(runs: list[Run]) -> str:
    """The median, and between what the runs lay."""
    speeds = sorted(run.mb_per_s for run in runs)
    cpu = statistics.median(run.cpu_s_per_gb for run in runs)
    return (
        f"{statistics.median(speeds):7.1f} MB/s ({speeds[0]:.1f} to {speeds[-1]:.1f}),"
        f" {cpu:.2f} CPU seconds a GB"
    )


def main() -> None:
    """Measure 1 KB and 100 B records and print what came out."""
    parser = argparse.ArgumentParser(prog="python -m bench.journey_cost", description=__doc__)
    parser.add_argument("--runs", type=int, default=7, help="runs of each (default: 7)")
    parser.add_argument(
        "--gb", type=float, default=1.0, help="GB a run at 1 KB; half of it at 100 B"
    )
    given = parser.parse_args()
    tool = rdkafka.built()
    for name, value in machine.describe().items():
        print(f"{name}: {value}")
    for size, share in ((1000, 1.0), (100, 0.5)):
        print(compare(tool, size, given.runs, int(given.gb * share * GB)))


if __name__ == "__main__":
    main()
