"""A real `ottla serve` process for tests from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.testing import BrokerProcess


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
