"""The demo's child processes: `ottla serve` and the pipeline. They end with the demo."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from demo.flights import data_folder

PIPELINE_FILE: Final = Path(__file__).parent / "flights.toml"
_READY: Final = re.compile(r"ready on (\S+:\d+)")
_START_S: Final = 30
_STOP_S: Final = 15
_SHOWN_EVERY_S: Final = 1.0


class DemoError(Exception):
    """The demo cannot continue; the message says why."""


@contextlib.contextmanager
def interrupted_later() -> Iterator[None]:
    """Handle SIGINT and SIGTERM after the block. A mask would be inherited by its processes."""
    came: list[int] = []
    before = {
        sign: signal.signal(sign, lambda number, _frame: came.append(number))
        for sign in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
    for number in came:
        signal.raise_signal(number)


class Child:
    """A process and its children (Spark's JVM), in a separate process group.

    Ctrl-C in the terminal therefore reaches only the demo, which ends its children in order.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        log: Path,
        started: list[Child],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.log = log
        self._errors: IO[bytes] = log.open("wb")
        self._buffer = b""
        # Ctrl-C in between would leave the process running.
        with interrupted_later():
            self._process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=environment,
                start_new_session=True,
            )
            started.append(self)

    @property
    def pid(self) -> int:
        return self._process.pid

    def line(self, wait_s: float) -> str | None:
        """Return the next line, or None after `wait_s`. Raises DemoError if the process ended."""
        assert self._process.stdout is not None
        until = time.monotonic() + wait_s
        while b"\n" not in self._buffer:
            left = until - time.monotonic()
            if not select.select([self._process.stdout], [], [], max(left, 0))[0]:
                return None
            more = os.read(self._process.stdout.fileno(), 65_536)
            if not more:
                raise DemoError(f"{self.log.stem} ended; see {self.log}")
            self._buffer += more
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line.decode()

    def answer(self, limit_s: float, show: Callable[[str], None], words: str) -> str | None:
        """Return the next line, or None after `limit_s`; until then show `words` and the time.

        Raises DemoError if the process ended.
        """
        began = time.monotonic()
        while (passed := time.monotonic() - began) < limit_s:
            show(f"{words} ({passed:.0f} s)")
            if (line := self.line(min(_SHOWN_EVERY_S, limit_s - passed))) is not None:
                return line
        return None

    def stop(self) -> None:
        """End the whole group with SIGTERM, later SIGKILL; return when all processes are gone."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            self._signal(sign)
            until = time.monotonic() + _STOP_S
            while self._alive() and time.monotonic() < until:
                time.sleep(0.02)
        self._errors.close()

    def _signal(self, sign: int) -> bool:
        try:
            os.killpg(self._process.pid, sign)
        except ProcessLookupError:
            return False
        return True

    def _alive(self) -> bool:
        self._process.poll()  # reaps it; otherwise the group would never be empty
        return self._signal(0)


def start_broker(folder: Path, started: list[Child], *options: str) -> str:
    """Start `ottla serve` on a free port, with these options; returns its address."""
    arguments = ["ottla", "serve", "--listen", "127.0.0.1:0", "--data", str(folder / "broker")]
    arguments += options
    broker = Child(arguments, folder / "broker.log", started)
    while (line := broker.line(_START_S)) is not None:
        if found := _READY.search(line):
            return found[1]
    raise DemoError(f"The broker did not start; see {broker.log}")


def pipeline_environment(
    bootstrap: str, folder: Path, starting: str = "earliest"
) -> dict[str, str]:
    """Return the environment variables that `flights.toml` uses."""
    return os.environ | {
        "OTTLA_DEMO_BROKER": bootstrap,
        "OTTLA_DEMO_FOLDER": str(folder),
        "OTTLA_DEMO_DATA": str(data_folder()),
        "OTTLA_DEMO_STARTING": starting,
    }


class Pipeline:
    """The process `ottla pipeline run` of a file."""

    def __init__(
        self, folder: Path, started: list[Child], file: Path, environment: dict[str, str]
    ) -> None:
        self.environment = environment
        self._spark_log = folder / "spark.log"
        arguments = ["ottla", "pipeline", "run", str(file), "--json"]
        arguments += ["--log", str(self._spark_log)]
        self.child = Child(arguments, folder / "pipeline.log", started, self.environment)

    def wait_for_start(self, limit_s: float, show: Callable[[str], None]) -> None:
        """Wait until the pipeline runs, and show its progress. Raises DemoError."""
        began = time.monotonic()
        while (passed := time.monotonic() - began) < limit_s:
            if self.state(0.2) == "running":
                return
            show(f"{self.progress()} ({passed:.0f} s)")
        raise DemoError(f"The pipeline did not start in time; see {self.child.log}")

    def state(self, wait_s: float) -> str | None:
        """Return the pipeline's new state, or None without one. Raises DemoError."""
        line = self.child.line(wait_s)
        if line is None:
            return None
        said: dict[str, Any] = json.loads(line)
        if said["state"] == "failed":
            raise DemoError(str(said["failure"]))
        return str(said["state"])

    def progress(self) -> str:
        """Describe the progress of Spark's start, which fetches its jars the first time."""
        if not self._spark_log.exists():
            return "Spark starts"
        text = self._spark_log.read_text(errors="replace")
        fetched = re.findall(r"^downloading \S+/(\S+\.jar)", text, re.MULTILINE)
        if fetched and ":: retrieving ::" not in text:
            return f"Spark fetches its jars from Maven Central, once ({fetched[-1]})"
        if ":: resolving dependencies" in text and ":: retrieving ::" not in text:
            return "Spark resolves its jars (the first time it fetches them, about a minute)"
        return "Spark starts"
