"""Frames on a plain connection: requests of one client, one after the other."""

from __future__ import annotations

import socket
import struct
from typing import Any, Final

CLIENT_ID: Final = "ottla-cli"
CORRELATION_ID: Final = 1
CORRELATION_BYTES: Final = 4
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
_HEADER: Final = struct.Struct(">hhih")
_SIZE: Final = struct.Struct(">i")


def answered(connection: socket.socket, request: Any) -> Any:
    """The response to a message of kio's. Raises OSError, EOFError or DecodeError if there is
    none."""
    # Imported late: a journey needs no message of Kafka's.
    from ottla.protocol.frames import read_response, write_request

    connection.sendall(write_request(request, CORRELATION_ID, CLIENT_ID))
    frame = received(connection, MAX_ANSWER_BYTES)
    return read_response(request.__api_key__, request.__version__, frame)[1]


def framed(key: int, body: bytes) -> bytes:
    """A request's frame: size, header v1 with version 0, body."""
    header = _HEADER.pack(key, 0, CORRELATION_ID, len(CLIENT_ID)) + CLIENT_ID.encode()
    return _SIZE.pack(len(header) + len(body)) + header + body


def received(connection: socket.socket, max_bytes: int) -> bytes:
    """A response's frame, which begins with the correlation id.

    Raises EOFError if the connection ends early or announces an invalid size, and OSError.
    """
    (size,) = _SIZE.unpack(exactly(connection, _SIZE.size))
    if not CORRELATION_BYTES <= size <= max_bytes:
        raise EOFError
    return exactly(connection, size)


def exactly(connection: socket.socket, size: int) -> bytes:
    """That many bytes. Raises EOFError if the connection ends early, and OSError."""
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(min(size - len(data), 1 << 16))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)
