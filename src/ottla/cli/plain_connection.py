"""A plain connection to a broker, for the requests that librdkafka has no call for.

A broker that is stopped in its tracks, or behind a broken network, may still take connections (the
system does, not the broker) and then says nothing. So where several addresses are given, each but
the last is first asked for its API versions, which a broker answers at once.
"""

from __future__ import annotations

import socket
import struct
from typing import Final

from ottla.cli.client import CONNECT_TIMEOUT_S, addresses, check_reachable
from ottla.cli.failures import Failed

CLIENT_ID: Final = b"ottla-cli"
CORRELATION_ID: Final = 1
CORRELATION_BYTES: Final = 4
SILENT_AFTER_S: Final = 2.0
MAX_VERSIONS_BYTES: Final = 1 << 20
API_VERSIONS: Final = 18
_HEADER: Final = struct.Struct(">hhih")
_SIZE: Final = struct.Struct(">i")
# What did not answer is asked last by all that follows in this process.
_silent: Final[set[tuple[str, int]]] = set()


def connected(bootstrap: str, answer_timeout_s: float) -> socket.socket:
    """A connection to the first address whose broker answers; reading and writing on it take
    `answer_timeout_s` at most. Raises Failed where none takes a connection."""
    candidates = sorted(addresses(bootstrap), key=_silent.__contains__)
    for number, address in enumerate(candidates, 1):
        try:
            connection = socket.create_connection(address, CONNECT_TIMEOUT_S)
        except OSError:
            continue
        if number < len(candidates) and not answers(connection):
            connection.close()
            _silent.add(address)
            continue
        connection.settimeout(answer_timeout_s)
        return connection
    check_reachable(bootstrap)
    raise Failed(f"none of {bootstrap} answers as a broker.")


def answers(connection: socket.socket) -> bool:
    """Whether a broker is there that answers ApiVersions."""
    connection.settimeout(SILENT_AFTER_S)
    try:
        connection.sendall(framed(API_VERSIONS, b""))
        received(connection, MAX_VERSIONS_BYTES)
    except (OSError, EOFError):
        return False
    return True


def broker_answers(host: str, port: int) -> bool:
    """Whether a broker at this address takes a connection and answers on it."""
    try:
        with socket.create_connection((host, port), CONNECT_TIMEOUT_S) as connection:
            return answers(connection)
    except OSError:
        return False


def framed(key: int, body: bytes) -> bytes:
    """A request's frame: size, header v1 with version 0, body."""
    header = _HEADER.pack(key, 0, CORRELATION_ID, len(CLIENT_ID)) + CLIENT_ID
    return _SIZE.pack(len(header) + len(body)) + header + body


def received(connection: socket.socket, max_bytes: int) -> bytes:
    """A response's frame, which begins with the correlation id. Raises EOFError where the
    connection ends before, or announces what cannot be one; and OSError.
    """
    (size,) = _SIZE.unpack(exactly(connection, _SIZE.size))
    if not CORRELATION_BYTES <= size <= max_bytes:
        raise EOFError
    return exactly(connection, size)


def exactly(connection: socket.socket, size: int) -> bytes:
    """That many bytes. Raises EOFError where the connection ends before, and OSError."""
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(min(size - len(data), 1 << 16))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)
