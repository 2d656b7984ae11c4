"""One request to one broker, on a connection of its own."""

from __future__ import annotations

import socket
import struct
from typing import Any, Final

from ottla.protocol.errors import DecodeError
from ottla.protocol.frames import read_response, write_request
from ottla.testing.errors import KitError, is_for_the_test

__tracebackhide__ = is_for_the_test

ANSWER_TIMEOUT_S: Final = 10.0


class NoResponseError(KitError):
    """The broker cannot be reached, or did not respond."""


def ask_broker(bootstrap: str, request: Any, timeout_s: float = ANSWER_TIMEOUT_S) -> Any:
    """The broker's response to a message of `messages_of`; `bootstrap` is its address. `timeout_s`
    limits each read. Raises NoResponseError.
    """
    host, _, port = bootstrap.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout_s) as connection:
            connection.sendall(write_request(request, 1, "ottla-testing"))
            (size_bytes,) = struct.unpack(">i", _exactly(connection, 4))
            frame = memoryview(_exactly(connection, size_bytes))
            return read_response(request.__api_key__, request.__version__, frame)[1]
    except (OSError, EOFError, DecodeError) as error:
        raise NoResponseError(f"no response from {bootstrap}: {error}") from None


def _exactly(connection: socket.socket, size_bytes: int) -> bytes:
    data = b""
    while len(data) < size_bytes:
        piece = connection.recv(size_bytes - len(data))
        if not piece:
            raise EOFError("the connection ended")
        data += piece
    return data
