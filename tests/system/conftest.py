"""A real `ottla serve` process for tests from outside."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from ottla.testing import BrokerProcess

MAX_HELD_MS: Final = 200
"""CPU time of a broker's event loop until it answers the watchdog: of one request, or of those of
all connections that were ready. The clock's time says little: machines are busy. On a machine that
needs n times `_USUAL_S`, it may be n times as long."""
_ADDITIONS: Final = 1_000_000
_USUAL_S: Final = 0.025
"""The CPU time of so many additions in Python on a usual machine."""
_HELD: Final = re.compile(rb".*the event loop was held for \d+ ms \((\d+) ms of CPU\).*")


@pytest.fixture(scope="session")
def logs_of_brokers() -> Iterator[dict[Path, int]]:
    """The logs of all brokers that tests start, also in clusters; and how much of each was read."""
    logs: dict[Path, int] = {}
    launch = BrokerProcess.launch

    def launch_and_note(self: BrokerProcess) -> None:
        launch(self)
        assert self.errors is not None
        logs.setdefault(self.errors, 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BrokerProcess, "launch", launch_and_note)
        yield logs


@pytest.fixture(autouse=True)
def nobody_holds_the_loop(logs_of_brokers: dict[Path, int]) -> Iterator[None]:
    """A request or a task that holds a broker's event loop fails the test that it is in."""
    yield
    held = []
    for path, position in list(logs_of_brokers.items()):
        if not path.exists():
            del logs_of_brokers[path]
            continue
        with path.open("rb") as log:
            log.seek(position)
            new = log.read()
        logs_of_brokers[path] = position + len(new)
        held += [line for line in _HELD.finditer(new) if int(line[1]) >= MAX_HELD_MS]
    if held:
        limit_ms = MAX_HELD_MS * slowness()
        lines = [line[0].decode() for line in held if int(line[1]) >= limit_ms]
        assert not lines, "\n".join(lines)


def slowness() -> float:
    """Return how much longer this machine, as busy as it is, needs than a usual one; at least 1."""
    began = time.process_time()
    number = 0
    for one in range(_ADDITIONS):
        number += one
    return max(1.0, (time.process_time() - began) / _USUAL_S)


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
        if broker.running:
            broker.kill()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for the tests of a module: give topics and groups fresh names."""
    running = BrokerProcess(tmp_path_factory.mktemp("broker") / "data").start()
    yield running
    assert running.stop() == 0, running.said()
