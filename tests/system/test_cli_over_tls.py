"""Commands over TLS know what they know without: the requests for which librdkafka has no call."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.client.certificates import self_signed, tls_in_front_of
from tests.system.test_cli import Typed

from ottla.testing.broker_process import BrokerProcess
from ottla.testing.ports import HOST, free_ports


class Secured:
    """Types commands at a broker that can be reached by TLS only, as far as clients are told."""

    def __init__(self, address: str, certificate: Path) -> None:
        self._typed = Typed(address)
        settings = {"security.protocol": "ssl", "ssl.ca.location": str(certificate)}
        self._options = [
            word for pair in settings.items() for word in ("--client-config", "=".join(pair))
        ]

    def run(self, *words: object, code: int = 0) -> str:
        return self._typed.run(*words, *self._options, code=code).stdout.decode()

    def json(self, *words: object, code: int = 0) -> Any:
        return self._typed.json(*words, *self._options, code=code)


@pytest.fixture
def secured(new_broker: Callable[..., BrokerProcess], tmp_path: Path) -> Iterator[Secured]:
    certificate = self_signed(tmp_path)
    (port,) = free_ports(1)
    with socket.create_server((HOST, 0)) as listener:
        address = f"{HOST}:{listener.getsockname()[1]}"
        new_broker("--listen", f"{HOST}:{port}", "--advertise", address)
        with tls_in_front_of(listener, (HOST, port), certificate):
            yield Secured(address, certificate)


def test_the_controller_is_known_and_checked(secured: Secured) -> None:
    cluster = secured.json("cluster", "describe")
    assert cluster["controller"] == cluster["brokers"][0]["id"]
    assert cluster["controller_answers"] is True
    assert cluster["controller_epoch"] == 1


def test_a_topic_is_described_as_a_whole(secured: Secured) -> None:
    secured.run("topic", "create", "t", "--partitions", "2")
    (topic,) = secured.json("topic", "describe", "t")
    assert [each["leader_epoch"] for each in topic["partitions"]] == [0, 0]
    assert [each["offline_replicas"] for each in topic["partitions"]] == [[], []]


def test_what_each_broker_stores(secured: Secured) -> None:
    (folder,) = secured.json("cluster", "log-dirs")
    assert folder["error"] is None
    assert secured.json("transaction", "list") == []
    assert secured.json("cluster", "reassign", "--list") == []
