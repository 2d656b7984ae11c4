"""Asks a broker for a journey: one request of Ottla's own, over a plain connection.

librdkafka sends no requests that it does not know, so this speaks for itself: Kafka's framing with
request header v1, then JSON. A broker that is not Ottla closes the connection on it.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any, Final

from ottla.cli.client import CONNECT_TIMEOUT_S, addresses, check_reachable
from ottla.cli.failures import Failed
from ottla.protocol.versions import JOURNEY

ANSWER_TIMEOUT_S: Final = 30.0
"""A search for a key reads some hundred MiB at most."""
MOST_ANSWER_BYTES: Final = 16 * 1024 * 1024
CLIENT_ID: Final = b"ottla-cli"
_HEADER: Final = struct.Struct(">hhih")
_SIZE: Final = struct.Struct(">i")
CORRELATION_ID: Final = 1

NO_OTTLA: Final = "Only an Ottla broker knows the journey of its messages."


def ask_journey(bootstrap: str, question: dict[str, Any]) -> dict[str, Any]:
    """The answer's document. Raises Failed with a sentence when there is none."""
    with connected(bootstrap) as connection:
        try:
            connection.sendall(framed(json.dumps(question).encode()))
            body = received(connection)
        except TimeoutError:
            raise Failed(
                f"{bootstrap} does not answer (waited {ANSWER_TIMEOUT_S:g} s).", NO_OTTLA
            ) from None
        except (ConnectionError, EOFError):
            raise Failed(
                f"what listens at {bootstrap} is not an Ottla broker: it closed the connection.",
                NO_OTTLA,
            ) from None
        except OSError as error:
            raise Failed(f"the connection to {bootstrap} broke: {error.strerror}.") from None
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict) or "journey" not in document:
        raise Failed(f"what listens at {bootstrap} is not an Ottla broker.", NO_OTTLA)
    return document


def connected(bootstrap: str) -> socket.socket:
    """A connection to the first address that takes one."""
    for address in addresses(bootstrap):
        try:
            connection = socket.create_connection(address, CONNECT_TIMEOUT_S)
        except OSError:
            continue
        connection.settimeout(ANSWER_TIMEOUT_S)
        return connection
    check_reachable(bootstrap)
    raise Failed(f"no broker can be reached at {bootstrap}.")


def framed(body: bytes) -> bytes:
    """The request's frame: size, header v1, body."""
    header = _HEADER.pack(JOURNEY, 0, CORRELATION_ID, len(CLIENT_ID)) + CLIENT_ID
    return _SIZE.pack(len(header) + len(body)) + header + body


def received(connection: socket.socket) -> bytes:
    """The response's body. Raises EOFError where the connection ends before it does."""
    (size,) = _SIZE.unpack(exactly(connection, _SIZE.size))
    if not _SIZE.size <= size <= MOST_ANSWER_BYTES:
        raise EOFError
    return exactly(connection, size)[_SIZE.size :]


def exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(min(size - len(data), 1 << 16))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)
