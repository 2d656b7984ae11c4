"""A broker process: its start, its end, and the error if it does not start."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing import BrokerProcess, KitError
from ottla.testing.errors import ProcessEndedError


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path / "data")
    yield broker
    if broker.running:
        broker.kill()


def connect(broker: BrokerProcess) -> None:
    host, _, port = broker.bootstrap.rpartition(":")
    socket.create_connection((host, int(port)), 10).close()


def test_a_restart_uses_the_same_port_and_folder(broker: BrokerProcess) -> None:
    with broker:
        address = broker.bootstrap
        assert not address.endswith(":0")
        connect(broker)
        broker.kill()
        assert not broker.running
        broker.start()
        assert broker.bootstrap == address
        connect(broker)
        assert broker.stop() == 0
        broker.start()
        connect(broker)
    assert not broker.running
    with pytest.raises(ConnectionRefusedError):
        connect(broker)


def test_a_paused_broker_runs_until_the_test_ends(broker: BrokerProcess) -> None:
    with broker:
        broker.pause()
        assert broker.running
        connect(broker)
    assert not broker.running


def test_the_error_says_why_the_broker_did_not_start(broker: BrokerProcess) -> None:
    broker.options = ["-c", "num.partitions=none"]
    with pytest.raises(ProcessEndedError, match=r"num\.partitions") as caught:
        broker.start()
    assert isinstance(caught.value, KitError)
    assert "num.partitions" in caught.value.why
    assert not broker.running
