"""Frames of one client on a connection, and connections that break inside one."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from ottla.cli.plain_frames import CLIENT_ID, CORRELATION_ID, answered, exactly, framed, received
from ottla.protocol.frames import read_request_body, read_request_header, write_response
from ottla.protocol.messages import messages_of

METADATA, VERSION = 3, 9
MAX_BYTES = 100

Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """The client's end and the broker's."""
    client, broker = socket.socketpair()
    with client, broker:
        client.settimeout(20)
        yield client, broker


def sized(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def test_a_frame_has_size_key_version_correlation_and_client() -> None:
    size, key, version, correlation_id, length = struct.unpack_from(">ihhih", framed(20_000, b"x"))
    assert (key, version, correlation_id, length) == (20_000, 0, CORRELATION_ID, len(CLIENT_ID))
    frame = framed(20_000, b"body")
    assert size == len(framed(20_000, b"x")) - 4
    assert frame.endswith(CLIENT_ID.encode() + b"body")


def test_a_response_in_pieces_is_put_together(ends: Ends) -> None:
    client, broker = ends
    response = sized(b"abcdefgh")
    for byte in response:
        broker.send(bytes([byte]))
    assert received(client, MAX_BYTES) == b"abcdefgh"


def test_the_next_response_is_left_for_the_next_call(ends: Ends) -> None:
    client, broker = ends
    broker.sendall(sized(b"first") + sized(b"second"))
    assert received(client, MAX_BYTES) == b"first"
    assert received(client, MAX_BYTES) == b"second"


@pytest.mark.parametrize("size", [-1, 0, 3, MAX_BYTES + 1, 2**31 - 1])
def test_an_invalid_size_is_refused_before_any_byte_is_read(ends: Ends, size: int) -> None:
    client, broker = ends
    broker.sendall(struct.pack(">i", size) + b"rest")
    with pytest.raises(EOFError):
        received(client, MAX_BYTES)
    assert client.recv(4) == b"rest"


@pytest.mark.parametrize("size", [4, MAX_BYTES])
def test_the_smallest_and_the_largest_response(ends: Ends, size: int) -> None:
    client, broker = ends
    broker.sendall(sized(b"x" * size))
    assert received(client, MAX_BYTES) == b"x" * size


@pytest.mark.parametrize("sent", [b"", b"\0\0", sized(b"abcdefgh")[:-1]])
def test_a_connection_that_ends_early(ends: Ends, sent: bytes) -> None:
    client, broker = ends
    broker.sendall(sent)
    broker.close()
    with pytest.raises(EOFError):
        received(client, MAX_BYTES)


def test_nothing_is_read_for_no_bytes(ends: Ends) -> None:
    client, broker = ends
    broker.sendall(b"x")
    assert exactly(client, 0) == b""
    assert exactly(client, 1) == b"x"


def test_a_message_is_sent_and_its_response_read(ends: Ends) -> None:
    client, broker = ends
    build = messages_of(METADATA, VERSION)
    response = build.MetadataResponse(cluster_id="a cluster", controller_id=5)
    parts = write_response(response, CORRELATION_ID)
    broker.sendall(b"".join(bytes(part) for part in parts))

    request = messages_of(METADATA, VERSION, "request").MetadataRequest(topics=())
    answer = answered(client, request)

    assert (answer.cluster_id, answer.controller_id) == ("a cluster", 5)
    frame = memoryview(received(broker, MAX_BYTES))
    header = read_request_header(frame)
    assert (header.key, header.version, header.client_id) == (METADATA, VERSION, CLIENT_ID)
    assert read_request_body(header, frame) == request
