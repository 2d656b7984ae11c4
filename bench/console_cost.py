"""What a console with five pages open costs the broker's clients: `python -m bench.console_cost`.

No figure of the broker may be worse by more than 3 %. One broker serves all runs, with a console
beside it or without, in turn: two brokers alone differ by more. Five pages are asked as a browser
asks them: their live part again every five seconds, a group's every three, a journey every second,
and a tail goes on. What the console does once, at its start, is over before anything is measured.

On two cores the console's own process takes CPU from the clients: requests are fewer by that alone.
So the broker's CPU for a request is reported, too, which shows what the pages cost the broker, and
the CPU of the console, which shows what they cost the machine. While nobody but the console asks
the broker, its CPU is disturbed least.
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
SMALL = 600_000
COMMITS = 40_000
LOADED = 2_000_000
LOADED_BYTES = 1000
WARM_UP_SHARE = 10
PAGES = {
    "/": 5.0,
    "/topics": 5.0,
    "/group?name=group-0": 3.0,
    "/topics/small-0/messages/0/0/journey": 1.0,
}
"""How often each is asked, in seconds. Each part of a run takes longer than all of them."""
TAIL = "/topics/small-1/tail?start=newest"
"""Of a topic that gets no records meanwhile: a reader of all records is no cost of the console."""
START_WAIT_MS = 60_000
OPEN_WITHIN_S = 60.0
SETTLED_S = 6.0
"""The first look at hanging transactions and certificates, and the first samples, are over."""
IDLE_S = 10.0


class Run(NamedTuple):
    """The values of one run."""

    small_requests: float
    small_cpu_us: float
    commits: float
    commit_cpu_us: float
    mb_per_s: float
    produce_cpu_s_per_gb: float
    console_percent: float
    """Of one core, that the console takes while the broker is loaded."""
    idle_percent: float
    """Of one core, that the broker takes while nobody but the console asks it."""
    idle_console_percent: float
    """Of one core, that the console takes then."""
    pages: int
    """How many were answered."""


class Open:
    """The pages that are open: each is asked again and again until it is closed."""

    def __init__(self, address: str, console: Child) -> None:
        self.console = console
        self.answered = 0
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._shown = [threading.Event() for _ in range(len(PAGES) + 1)]
        *pages, tail = self._shown
        self._threads = [
            threading.Thread(target=self._show, args=(shown, f"http://{address}{path}", every_s))
            for shown, (path, every_s) in zip(pages, PAGES.items(), strict=True)
        ]
        follow = threading.Thread(target=self._follow, args=(tail, f"http://{address}{TAIL}"))
        self._threads.append(follow)
        for each in self._threads:
            each.start()

    def _show(self, shown: threading.Event, url: str, every_s: float) -> None:
        request = Request(url, headers={"HX-Request": "true"})
        while not self._closed.is_set():
            with urlopen(request, timeout=OPEN_WITHIN_S) as response:
                response.read()
            shown.set()
            with self._lock:
                self.answered += 1
            self._closed.wait(every_s)

    def _follow(self, shown: threading.Event, url: str) -> None:
        with urlopen(url, timeout=OPEN_WITHIN_S) as response:
            while not self._closed.is_set() and response.readline():
                shown.set()

    def wait(self) -> None:
        """Until each page is there, and has what it finds out beside."""
        until_s = time.monotonic() + OPEN_WITHIN_S
        for each in self._shown:
            if not each.wait(max(0.0, until_s - time.monotonic())):
                raise TimeoutError(f"a page did not open in {OPEN_WITHIN_S:g} s")
        time.sleep(SETTLED_S)

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
        pages = Open(address, child)
        try:
            pages.wait()
            yield pages
        finally:
            pages.close()
    finally:
        child.stop()


@contextmanager
def none_opened() -> Iterator[None]:
    time.sleep(SETTLED_S)
    yield None


class Used:
    """The CPU that a console takes, if there is one."""

    def __init__(self, pages: Open | None) -> None:
        self._child = pages.console if pages is not None else None
        self._began_s = time.monotonic()
        self._before_s = self._seconds()

    def _seconds(self) -> float:
        return self._child.cpu_seconds() if self._child is not None else 0.0

    def percent(self) -> float:
        """Of one core, since this was made."""
        return (self._seconds() - self._before_s) / (time.monotonic() - self._began_s) * 100


def measure(broker: Broker, bench: Bench, topic: str, *, with_console: bool) -> Run:
    """One run; `topic` takes the load."""
    first_produce(broker.address, topic, 0)
    with (
        tempfile.TemporaryDirectory() as scratch,
        opened(broker, Path(scratch)) if with_console else none_opened() as pages,
    ):
        busy = Used(pages)
        small, small_cpu = produce(broker, bench, 1, SMALL)
        commits, commit_cpu = commit(broker, COMMITS)
        mb_per_s, _, produce_cpu, *_ = load(
            broker, bench.rdkafka_performance, broker.address, topic, LOADED, LOADED_BYTES, 1
        )
        console = busy.percent()
        resting = Used(pages)
        idle = settle(broker, IDLE_S) * 100
        answered = pages.answered if pages is not None else 0
        return Run(
            *(small, small_cpu, commits, commit_cpu, mb_per_s, produce_cpu),
            *(console, idle, resting.percent(), answered),
        )


def compare(bench: Bench, runs: int) -> str:
    """Run both in turn; the medians, and between what each lies."""
    found: dict[bool, list[Run]] = {True: [], False: []}
    with running(OTTLA, None) as broker:
        for topic in ("small-0", "small-1", "small-2", "small-3"):
            first_produce(broker.address, topic, 0)
        produce(broker, bench, 1, SMALL // WARM_UP_SHARE)
        commit(broker, COMMITS // WARM_UP_SHARE)
        for number in range(runs):
            for with_console in (True, False) if number % 2 else (False, True):
                topic = f"load-{number}-{with_console}".lower()
                found[with_console].append(measure(broker, bench, topic, with_console=with_console))
                print(".", end="", flush=True)
    print()
    lines = [f"{'':24}{'without':>12}{'five pages':>12}{'':10}{'without':>24}{'five pages':>24}"]
    for at, name in enumerate(Run._fields):
        values = [[each[at] for each in found[with_console]] for with_console in (False, True)]
        without, beside = map(statistics.median, values)
        change = f"{(beside / without - 1) * 100:+.1f} %" if without else ""
        spread = "".join(f"{f'{min(of):,.2f} to {max(of):,.2f}':>24}" for of in values)
        lines.append(f"{name:24}{without:12,.2f}{beside:12,.2f}{change:>10}{spread}")
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
