"""Makes a cluster create its internal topics, with FindCoordinator requests."""

from __future__ import annotations

import socket
import struct
import time
from typing import Any, Final

from ottla.protocol.errors import DecodeError, ErrorCode
from ottla.protocol.frames import read_response, write_request
from ottla.protocol.messages import messages_of
from ottla.testing.errors import KitError

FIND_COORDINATOR: Final = 10
_VERSION: Final = 3
_GROUP: Final = 0
ANSWER_TIMEOUT_S: Final = 10.0
PAUSE_S: Final = 0.05


def create_offsets_topic(bootstrap: str, timeout_s: float) -> None:
    """Wait until a group has a coordinator; `bootstrap` is one broker's address.

    Raises KitError with the broker's reason if there is none within `timeout_s`.
    """
    until = time.monotonic() + timeout_s
    while True:
        reason = _refusal(bootstrap)
        if reason is None:
            return
        if time.monotonic() > until:
            raise KitError(f"there is no __consumer_offsets after {timeout_s:g} s: {reason}")
        time.sleep(PAUSE_S)


def _refusal(bootstrap: str) -> str | None:
    """Why no group can be used now, or None."""
    build = messages_of(FIND_COORDINATOR, _VERSION, "request")
    request = build.FindCoordinatorRequest(key="ottla", key_type=_GROUP)
    host, _, port = bootstrap.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), ANSWER_TIMEOUT_S) as connection:
            connection.sendall(write_request(request, 1, "ottla-testing"))
            response = _response(connection)
    except (OSError, EOFError, DecodeError) as error:
        return f"no response from {bootstrap}: {error}"
    if response.error_code is ErrorCode.none:
        return None
    return str(response.error_message or response.error_code.name)


def _response(connection: socket.socket) -> Any:
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    return read_response(FIND_COORDINATOR, _VERSION, memoryview(_exactly(connection, size)))[1]


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError("the connection ended")
        data += piece
    return data
