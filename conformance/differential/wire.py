"""One blocking connection that sends any request in any version, also wrong ones."""

from __future__ import annotations

import socket
from struct import Struct
from typing import Any, Final

from ottla.protocol.frames import read_response, write_request

TIMEOUT_SECONDS: Final = 30.0
CLIENT_ID: Final = "differential"
_SIZE: Final = Struct(">i")


class ClosedError(Exception):
    """The broker closed the connection instead of an answer."""


class Wire:
    """Connects at first use, and again after the broker closed the connection."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._address = host, int(port)
        self._socket: socket.socket | None = None
        self._last_correlation_id = 0

    def ask(self, request: Any) -> Any:
        """The response. Raises ClosedError, or TimeoutError without an answer."""
        self._last_correlation_id += 1
        try:
            frame = self._exchange(write_request(request, self._last_correlation_id, CLIENT_ID))
        except (ConnectionError, ClosedError):
            self.close()
            raise ClosedError from None
        except TimeoutError:
            self.close()
            raise
        _, response = read_response(request.__api_key__, request.__version__, frame)
        return response

    def _exchange(self, data: bytes) -> bytes:
        if self._socket is None:
            self._socket = socket.create_connection(self._address, TIMEOUT_SECONDS)
        self._socket.sendall(data)
        (size_bytes,) = _SIZE.unpack(self._read(_SIZE.size))
        return self._read(size_bytes)

    def _read(self, size_bytes: int) -> bytes:
        assert self._socket is not None
        data = bytearray()
        while len(data) < size_bytes:
            piece = self._socket.recv(size_bytes - len(data))
            if not piece:
                raise ClosedError
            data += piece
        return bytes(data)

    def close(self) -> None:
        """Ends the connection, if there is one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
