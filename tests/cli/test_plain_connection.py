"""Finding a broker that answers among several addresses."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ottla.cli import plain_connection
from ottla.cli.failures import Failed
from ottla.cli.plain_connection import API_VERSIONS, broker_answers, connected
from ottla.cli.plain_frames import exactly, framed


@pytest.fixture(autouse=True)
def long_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who answers late on a busy machine is not silent."""
    monkeypatch.setattr(plain_connection, "SILENT_AFTER_S", 20)
    monkeypatch.setattr(plain_connection, "_silent", set())


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch, long_patience: None) -> None:
    monkeypatch.setattr(plain_connection, "SILENT_AFTER_S", 0.2)


def address_of(server: socket.socket) -> str:
    return "127.0.0.1:{1}".format(*server.getsockname())


@contextmanager
def broker(answer: bytes = b"\0\0\0\4abcd") -> Iterator[tuple[str, list[bytes]]]:
    """Answers each request on one connection; tells what it was asked."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                while size := connection.recv(4, socket.MSG_WAITALL):
                    asked.append(connection.recv(int.from_bytes(size), socket.MSG_WAITALL))
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield address_of(server), asked
        thread.join(20)


@pytest.mark.usefixtures("short_patience")
def test_a_broker_that_accepts_connections_but_is_silent_is_skipped() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, broker() as (good, asked):
        bootstrap = f"{address_of(silent)},{good}"
        with connected(bootstrap, 5) as connection:
            assert connection.getpeername()[1] == int(good.rpartition(":")[2])
            assert connection.gettimeout() == 5
        assert asked == []  # the last candidate is not tried first
        # And the next question goes to the others at once.
        assert ("127.0.0.1", silent.getsockname()[1]) in plain_connection._silent


def test_the_first_broker_that_responds_is_used_on_the_same_connection() -> None:
    with broker() as (good, asked), socket.create_server(("127.0.0.1", 0)) as other:
        with connected(f"{good},{address_of(other)}", 5) as connection:
            connection.sendall(framed(3, b"more"))
            assert exactly(connection, 8) == b"\0\0\0\4abcd"
        assert [each[:2] for each in asked] == [API_VERSIONS.to_bytes(2), b"\0\3"]
        assert asked[1].endswith(b"more")


def test_a_broker_with_an_invalid_response_is_skipped() -> None:
    with (
        broker(b"HTTP") as (liar, _),
        socket.create_server(("127.0.0.1", 0)) as other,
        connected(f"{liar},{address_of(other)}", 5) as connection,
    ):
        assert connection.getpeername() == other.getsockname()


def test_without_a_listener_the_error_has_the_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = address_of(server)
    with pytest.raises(Failed, match=r"cannot reach a broker at .*: connection refused"):
        connected(f"{closed},{closed}", 5)


def test_an_incomplete_response_is_an_error() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"abc")
        theirs.shutdown(socket.SHUT_WR)
        assert exactly(ours, 2) == b"ab"
        with pytest.raises(EOFError):
            exactly(ours, 2)


def answered(address: str) -> bool:
    host, _, port = address.rpartition(":")
    return broker_answers(host, int(port))


def test_a_broker_that_answers() -> None:
    with broker() as (good, _):
        assert answered(good)


@pytest.mark.usefixtures("short_patience")
def test_a_silent_or_missing_broker_does_not_respond() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = address_of(silent)
        assert not answered(address)
    # Now nobody listens there.
    assert not answered(address)
