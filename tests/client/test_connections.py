"""Which broker is asked if any will do, and connections that are kept."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster, closing

from ottla.client.addresses import Address
from ottla.client.client import Client
from ottla.client.connection import open_connection
from ottla.client.errors import AddressError, ClosedError, NoAnswerError, UnreachableError
from ottla.client.patience import Patience
from ottla.client.question import Question
from ottla.client.security import Security
from ottla.protocol.frames import read_request_header, write_response
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import API_VERSIONS

HEARTBEAT = 12
SHORT = Patience(silent_s=0.2, answer_s=0.2)
BOTH = "b1:9092,b2:9092"


def question() -> Question:
    return Question(HEARTBEAT, 4, lambda messages: messages.HeartbeatRequest(group_id="g"))


def beat(address: str, request: Any) -> str:
    return f"from {address}"


def cluster(*answers: Any) -> FakeCluster:
    return FakeCluster({HEARTBEAT: answers or (beat,)})


def test_a_connection_is_kept_for_the_next_request() -> None:
    brokers = cluster()
    client = brokers.client()
    assert [client.ask_any(question()) for _ in range(2)] == ["from b1:9092"] * 2
    assert brokers.connected == ["b1:9092"]
    client.close()
    assert brokers.closed == ["b1:9092"]


def test_a_kept_connection_that_the_broker_has_ended_is_replaced() -> None:
    brokers = cluster(beat, closing, beat)
    client = brokers.client()
    assert [client.ask_any(question()) for _ in range(2)] == ["from b1:9092"] * 2
    assert brokers.connected == ["b1:9092"] * 2


def test_a_new_connection_that_the_broker_ends_is_a_failure() -> None:
    with pytest.raises(ClosedError):
        cluster(closing).client().ask_any(question())


def test_a_silent_broker_is_skipped_and_then_tried_last() -> None:
    brokers = cluster()
    brokers.silent.add("b1:9092")
    client = brokers.client(BOTH)
    assert client.ask_any(question()) == "from b2:9092"
    brokers.silent.clear()
    assert client.ask_any(question()) == "from b2:9092"
    # One that falls silent later is noticed before it is asked.
    brokers.silent.add("b2:9092")
    assert client.ask_any(question()) == "from b1:9092"


def test_brokers_that_the_cluster_names_are_asked_too() -> None:
    brokers = cluster()
    client = brokers.client()
    client.metadata([])
    brokers.unreachable.add("b1:9092")
    assert client.ask_any(question()) == "from b2:9092"


def test_the_reason_if_nobody_responds() -> None:
    brokers = cluster()
    brokers.unreachable |= {"b1:9092", "b2:9092"}
    reason = "cannot reach a broker at b1:9092,b2:9092: connection refused"
    with pytest.raises(UnreachableError, match=reason):
        brokers.client(BOTH).ask_any(question())
    # To be silent says more than not to listen.
    brokers.silent.add("b1:9092")
    brokers.unreachable.remove("b1:9092")
    with pytest.raises(NoAnswerError, match="no response from b1:9092"):
        brokers.client(BOTH).ask_any(question())


def test_only_a_broker_with_tls_is_asked_for_its_certificate() -> None:
    brokers, place = cluster(), Address("b2", 9092)
    brokers.certificate_ends_s = 7
    assert brokers.client().certificate_ends_s(place) is None
    assert brokers.connected == []
    client = Client("b1:9092", {"security.protocol": "SSL"}, connect=brokers.connect)
    assert client.certificate_ends_s(place) == 7
    assert brokers.connected == ["b2:9092"]


def test_a_wrong_address() -> None:
    with pytest.raises(AddressError, match="bootstrap must be HOST:PORT, not 'a:b'"):
        Client("a:b")


# With sockets


@contextmanager
def listener(*, answers: bool = True) -> Iterator[Address]:
    """Answers ApiVersions on one connection, until the client ends it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                while size := connection.recv(4, socket.MSG_WAITALL):
                    frame = connection.recv(int.from_bytes(size), socket.MSG_WAITALL)
                    build = messages_of(API_VERSIONS, 0)
                    response = build.ApiVersionsResponse(api_keys=())
                    correlation_id = read_request_header(memoryview(frame)).correlation_id
                    connection.sendall(b"".join(write_response(response, correlation_id)))

        thread = threading.Thread(target=serve)
        if answers:
            thread.start()
        yield Address(*server.getsockname())
        if answers:
            thread.join(20)
            assert not thread.is_alive()


def test_a_broker_is_asked_on_its_open_connection_whether_it_answers() -> None:
    brokers = cluster()
    client = brokers.client()
    client.ask_any(question())
    assert client.is_answering(Address("b1", 9092))
    assert brokers.connected == ["b1:9092"]
    assert client.is_answering(Address("b2", 9092))
    assert brokers.connected == ["b1:9092", "b2:9092"]


def test_a_broker_that_answers() -> None:
    with listener() as address:
        assert Client("any:1").is_answering(address)


def test_a_silent_or_missing_broker_does_not_answer() -> None:
    client = Client("any:1", patience=SHORT)
    with listener(answers=False) as address:
        assert not client.is_answering(address)
    # Now nobody listens there.
    assert not client.is_answering(address)


def test_a_listener_that_is_silent_or_gone_has_a_reason() -> None:
    with (
        listener(answers=False) as address,
        pytest.raises(NoAnswerError, match=r"no response from .* within 0\.2 s"),
    ):
        Client(str(address), patience=SHORT).ask_any(question())
    with pytest.raises(UnreachableError, match=f"broker at {address}: connection refused"):
        Client(str(address)).ask_any(question())


def test_requests_do_not_wait_for_acknowledgements_of_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    """With Nagle's algorithm, the first request after a TLS handshake took 40 ms longer."""
    opened: list[socket.socket] = []
    connect = socket.create_connection

    def noted(*arguments: Any) -> socket.socket:
        opened.append(connect(*arguments))
        return opened[-1]

    monkeypatch.setattr(socket, "create_connection", noted)
    with listener() as address:
        connection = open_connection(address, Security(), "me", 5, 5)
        assert opened[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        connection.close()
