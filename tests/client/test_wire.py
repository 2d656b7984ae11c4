"""Frames of one client on a connection, and connections that break inside one."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from ottla.client.addresses import Address
from ottla.client.errors import ClosedError, NoAnswerError, NotKafkaError
from ottla.client.wire import CORRELATION_ID, MAX_ANSWER_BYTES, Wire
from ottla.protocol.frames import read_request_body, read_request_header, write_response
from ottla.protocol.messages import messages_of

METADATA, VERSION = 3, 9
OTTLAS_OWN = 20_000
CLIENT_ID = "a client"
WAIT_S = 20

Ends = tuple[Wire, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """The client's end and the broker's."""
    client, broker = socket.socketpair()
    with client, broker:
        broker.settimeout(WAIT_S)
        yield Wire(client, Address("b", 9), CLIENT_ID), broker


def sized(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def test_a_frame_has_size_key_version_correlation_and_client(ends: Ends) -> None:
    wire, broker = ends
    broker.sendall(sized(b"\0\0\0\1answer"))
    assert wire.ask_bytes(OTTLAS_OWN, b"body", WAIT_S) == b"answer"
    frame = broker.recv(1000)
    size, key, version, correlation_id, length = struct.unpack_from(">ihhih", frame)
    assert (key, version, correlation_id, length) == (20_000, 0, CORRELATION_ID, len(CLIENT_ID))
    assert size == len(frame) - 4
    assert frame.endswith(CLIENT_ID.encode() + b"body")


def test_a_response_in_pieces_is_put_together(ends: Ends) -> None:
    wire, broker = ends
    for byte in sized(b"\0\0\0\1abcdefgh"):
        broker.send(bytes([byte]))
    assert wire.ask_bytes(OTTLAS_OWN, b"", WAIT_S) == b"abcdefgh"


def test_the_next_response_is_left_for_the_next_request(ends: Ends) -> None:
    wire, broker = ends
    broker.sendall(sized(b"\0\0\0\1first") + sized(b"\0\0\0\1second"))
    assert wire.ask_bytes(OTTLAS_OWN, b"", WAIT_S) == b"first"
    assert wire.ask_bytes(OTTLAS_OWN, b"", WAIT_S) == b"second"


@pytest.mark.parametrize("size", [-1, 0, 3, MAX_ANSWER_BYTES + 1, 2**31 - 1])
def test_an_invalid_size_is_refused_before_any_byte_is_read(ends: Ends, size: int) -> None:
    wire, broker = ends
    broker.sendall(struct.pack(">i", size) + b"rest")
    with pytest.raises(NotKafkaError, match=f"its size is {size} bytes"):
        wire.ask_bytes(OTTLAS_OWN, b"", WAIT_S)


@pytest.mark.parametrize("sent", [b"", b"\0\0", sized(b"abcdefgh")[:-1]])
def test_a_connection_that_ends_early(ends: Ends, sent: bytes) -> None:
    wire, broker = ends
    broker.sendall(sent)
    broker.shutdown(socket.SHUT_WR)
    with pytest.raises(ClosedError, match="the broker at b:9 closed the connection"):
        wire.ask_bytes(OTTLAS_OWN, b"", WAIT_S)


@pytest.mark.parametrize("sent", [b"", sized(b"abcdefgh")[:-1]])
def test_a_response_that_does_not_come(ends: Ends, sent: bytes) -> None:
    wire, broker = ends
    broker.sendall(sent)
    with pytest.raises(NoAnswerError, match=r"no response from b:9 within 0\.05 s"):
        wire.ask_bytes(OTTLAS_OWN, b"", 0.05)


def test_a_message_is_sent_and_its_response_read(ends: Ends) -> None:
    wire, broker = ends
    build = messages_of(METADATA, VERSION)
    response = build.MetadataResponse(cluster_id="a cluster", controller_id=5)
    broker.sendall(b"".join(map(bytes, write_response(response, CORRELATION_ID))))

    request = messages_of(METADATA, VERSION, "request").MetadataRequest(topics=())
    answer = wire.ask(request, WAIT_S)

    assert (answer.cluster_id, answer.controller_id) == ("a cluster", 5)
    frame = memoryview(broker.recv(1000))[4:]
    header = read_request_header(frame)
    assert (header.key, header.version, header.client_id) == (METADATA, VERSION, CLIENT_ID)
    assert read_request_body(header, frame) == request


def test_bytes_that_are_not_a_message(ends: Ends) -> None:
    wire, broker = ends
    broker.sendall(sized(b"\xff" * 10))
    request = messages_of(METADATA, VERSION, "request").MetadataRequest(topics=())
    with pytest.raises(NotKafkaError, match="the response from b:9 is not a Kafka response: "):
        wire.ask(request, WAIT_S)
