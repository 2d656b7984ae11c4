"""What a console with five pages open costs the broker's clients: `python -m bench.console_cost`.

No figure of the broker may be worse by more than 3 %. Each run starts a broker, with a console
beside it or without, in turn; five pages are asked as a browser asks them (their live part again
every five seconds, a journey every second). Small requests and produced megabytes are measured, and
the broker's CPU for them, which other work on the machine disturbs less: on two cores the console's
own process takes CPU from the clients, too. The broker's CPU while it is idle but for the console
is what the pages cost it; it is disturbed least.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.request import Request, urlopen

from components.child import Child

from bench import machine, rdkafka
from bench.brokers import Broker, running, settle
from bench.figures.small_requests import commit, produce
from bench.figures.start import first_produce
from bench.figures.throughput import load
from bench.measure import OTTLA, Bench
from ottla.testing.ports import free_ports

PROMISED_PERCENT = 3.0
SMALL = 40_000
COMMITS = 3_000
LOADED = 500_000
LOADED_BYTES = 1000
PAGES = {
    "/": 5.0,
    "/topics": 5.0,
    "/topics/small-0/partitions": 5.0,
    "/group?name=group-0": 5.0,
    "/topics/small-0/messages/0/0/journey": 1.0,
}
"""How often each is asked, in seconds."""
START_WAIT_MS = 60_000
IDLE_S = 20.0


class Run(NamedTuple):
    """The values of one run."""

    small_requests: float
    small_cpu_us: float
    commits: float
    commit_cpu_us: float
    mb_per_s: float
    produce_cpu_s_per_gb: float
    idle_percent: float
    """Of one core, that the broker takes while nobody but the console asks it."""
    pages: int
    """How many were answered."""


class Open:
    """The pages that are open: each is asked again and again until it is closed."""

    def __init__(self, address: str) -> None:
        self.answered = 0
        self._closed = threading.Event()
        self._threads = [
            threading.Thread(target=self._show, args=(f"http://{address}{path}", every_s))
            for path, every_s in PAGES.items()
        ]
        for each in self._threads:
            each.start()

    def _show(self, url: str, every_s: float) -> None:
        request = Request(url, headers={"HX-Request": "true"})
        while not self._closed.wait(every_s):
            with urlopen(request, timeout=60) as response:
                response.read()
            self.answered += 1

    def close(self) -> None:
        self._closed.set()
        for each in self._threads:
            each.join()


@contextmanager
def opened(broker: Broker, folder: Path) -> Iterator[Open]:
    """A console beside the broker, with the pages open."""
    port = free_ports(1)[0]
    address = f"127.0.0.1:{port}"
    script = str(Path(sys.executable).with_name("ottla"))
    command = [script, "console", "--bootstrap", broker.address, "--listen", address]
    child = Child(command, folder / "console.log")
    try:
        child.wait_for_port(port, START_WAIT_MS)
        pages = Open(address)
        try:
            yield pages
        finally:
            pages.close()
    finally:
        child.stop()


@contextmanager
def none_opened() -> Iterator[None]:
    yield None


def measure(bench: Bench, *, with_console: bool) -> Run:
    """One run."""
    with running(OTTLA, None) as broker, tempfile.TemporaryDirectory() as scratch:
        for topic in ("small-0", "small-1", "small-2", "small-3", "load"):
            first_produce(broker.address, topic, 0)
        produce(broker, bench, 1, SMALL // 10)
        commit(broker, COMMITS // 10)
        with opened(broker, Path(scratch)) if with_console else none_opened() as pages:
            small, small_cpu = produce(broker, bench, 1, SMALL)
            commits, commit_cpu = commit(broker, COMMITS)
            mb_per_s, _, produce_cpu, *_ = load(
                broker, bench.rdkafka_performance, broker.address, "load", LOADED, LOADED_BYTES, 1
            )
            idle = settle(broker, IDLE_S) * 100
            answered = pages.answered if pages is not None else 0
    return Run(small, small_cpu, commits, commit_cpu, mb_per_s, produce_cpu, idle, answered)


def compare(bench: Bench, runs: int) -> str:
    """Run both in turn; the results in a few lines."""
    found: dict[bool, list[Run]] = {True: [], False: []}
    for number in range(runs):
        for with_console in (True, False) if number % 2 else (False, True):
            found[with_console].append(measure(bench, with_console=with_console))
            print(".", end="", flush=True)
    print()
    lines = [f"{'':24}{'without':>12}{'five pages':>12}"]
    for at, name in enumerate(Run._fields):
        without, beside = (
            statistics.median(each[at] for each in found[with_console])
            for with_console in (False, True)
        )
        change = f"{(beside / without - 1) * 100:+8.1f} %" if without else ""
        lines.append(f"{name:24}{without:12,.2f}{beside:12,.2f}{change}")
    return "\n".join([*lines, f"Promised: none worse by more than {PROMISED_PERCENT:g} %."])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.console_cost", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs of each (default: 5)")
    given = parser.parse_args()
    for name, value in machine.describe().items():
        print(f"{name}: {value}")
    began_s = time.monotonic()
    print(compare(Bench(None, rdkafka.built(), quick=False), given.runs))
    print(f"in {time.monotonic() - began_s:.0f} s")


if __name__ == "__main__":
    main()
