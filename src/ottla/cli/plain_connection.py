"""A plain connection to a broker, for requests for which librdkafka has no call.

A broker that is suspended, or behind a broken network, may still accept connections (the operating
system does) but not respond. So if several addresses are given, each one but the last is first
asked for its API versions, which a live broker answers at once.
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
# Addresses that did not respond are tried last by later calls in this process.
_silent: Final[set[tuple[str, int]]] = set()


def connected(bootstrap: str, answer_timeout_s: float) -> socket.socket:
    """A connection to the first address whose broker responds.

    Reads and writes on it take at most `answer_timeout_s`. Raises Failed if no address accepts a
    connection.
    """
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
    raise Failed(f"no broker responds at {bootstrap}.")


def answers(connection: socket.socket) -> bool:
    """Whether a broker responds to ApiVersions on this connection."""
    connection.settimeout(SILENT_AFTER_S)
    try:
        connection.sendall(framed(API_VERSIONS, b""))
        received(connection, MAX_VERSIONS_BYTES)
    except (OSError, EOFError):
        return False
    return True


def broker_answers(host: str, port: int) -> bool:
    """Whether a broker at this address accepts a connection and responds."""
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
