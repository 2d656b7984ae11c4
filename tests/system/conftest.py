"""A real `ottla serve` process for tests from outside."""

from __future__ import annotations

import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

READY = re.compile(r"ready on (\S+:\d+)")
START_WITHIN_S = 30
STOP_WITHIN_S = 30


@dataclass
class BrokerProcess:
    """One `ottla serve`; `start` after `kill` or `stop` takes the same port and folder again."""

    data: Path
    options: list[str] = field(default_factory=list)
    bootstrap: str = "127.0.0.1:0"
    process: subprocess.Popen[str] | None = None
    errors: Path | None = None

    def start(self) -> BrokerProcess:
        self.errors = self.data.parent / f"{self.data.name}.stderr"
        with self.errors.open("a") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ottla", "serve", *self._arguments()],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.bootstrap = self._ready_address()
        return self

    def _arguments(self) -> list[str]:
        return ["--listen", self.bootstrap, "--data", str(self.data), *self.options]

    def _ready_address(self) -> str:
        assert self.process is not None
        assert self.process.stdout is not None
        until = time.monotonic() + START_WITHIN_S
        while time.monotonic() < until and self.process.poll() is None:
            readable, _, _ = select.select([self.process.stdout], [], [], 0.1)
            if readable and (found := READY.search(self.process.stdout.readline())):
                return found[1]
        raise AssertionError(f"the broker did not start: {self.said()}")

    def said(self) -> str:
        return self.errors.read_text() if self.errors is not None else ""

    def kill(self) -> None:
        """As a power cut is for the process: no goodbye."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=STOP_WITHIN_S)

    def stop(self) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=STOP_WITHIN_S)
        return self.process.returncode


@pytest.fixture
def new_broker(tmp_path: Path) -> Iterator[Callable[..., BrokerProcess]]:
    """Starts brokers, each with its own folder unless `data` names one; ends them all."""
    started: list[BrokerProcess] = []

    def start(*options: str, data: Path | None = None) -> BrokerProcess:
        folder = data or tmp_path / f"data-{len(started)}"
        broker = BrokerProcess(folder, list(options))
        started.append(broker)
        return broker.start()

    yield start
    for broker in started:
        if broker.process is not None and broker.process.poll() is None:
            broker.kill()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for the tests of a module: give topics and groups fresh names."""
    running = BrokerProcess(tmp_path_factory.mktemp("broker") / "data").start()
    yield running
    assert running.stop() == 0, running.said()
