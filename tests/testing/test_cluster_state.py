"""Reads of the coordination tree survive the expiry of the reader's own session."""

from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss, NoNodeError, SessionExpiredError

from ottla.testing.cluster_state import ClusterState
from ottla.testing.errors import KitError


class Client:
    """A fake of kazoo's client with one response for all reads."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.closed = False

    def get(self, path: str) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer, None

    def get_children(self, path: str) -> Any:
        return self.get(path)[0]

    def stop(self) -> None:
        self.closed = True

    def close(self) -> None:
        assert self.closed


def state(monkeypatch: pytest.MonkeyPatch, *clients: Client) -> ClusterState:
    """A state that uses these clients, one after the other."""
    left = list(clients)
    made = ClusterState("unused")

    def connected() -> Client:
        if made._client is None:
            made._client = left.pop(0)
        client: Client = made._client
        return client

    monkeypatch.setattr(made, "_connected", connected)
    return made


def test_the_reader_replaces_an_expired_session(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Client(SessionExpiredError())
    assert state(monkeypatch, first, Client(b"7")).controller_epoch() == 7
    assert first.closed
    assert state(monkeypatch, Client(SessionExpiredError()), Client(["2"])).live_brokers() == [2]


def test_a_failed_read_names_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    for clients in ([ConnectionLoss()], [SessionExpiredError(), SessionExpiredError()]):
        reader = state(monkeypatch, *map(Client, clients))
        with pytest.raises(KitError, match="cannot read /controller_epoch"):
            reader.controller_epoch()
        assert reader._client is None


def test_a_missing_node_reads_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = state(monkeypatch, Client(NoNodeError()))
    assert reader.controller_epoch() is None
    assert reader.topics() == []
