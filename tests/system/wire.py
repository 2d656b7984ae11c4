"""One TCP connection to a broker that sends what a test wants, sensible or not."""

from __future__ import annotations

import socket
from typing import Any, Self

from ottla.protocol.frames import read_response, write_request
from ottla.protocol.messages import Messages, messages_of

ANSWER_WITHIN_S = 30


class Wire:
    """A blocking connection. `ask` speaks the protocol; `send` takes any bytes."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=ANSWER_WITHIN_S)
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    @staticmethod
    def request(key: int, version: int) -> Messages:
        """Builds request messages of that type and version."""
        return messages_of(key, version, "request")

    def ask(self, request: Any) -> Any:
        """The decoded answer to a request message."""
        self._correlation_id += 1
        self.send(write_request(request, self._correlation_id, "tests"))
        answered, response = read_response(request.__api_key__, request.__version__, self.frame())
        assert answered == self._correlation_id
        return response

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def frame(self) -> bytes:
        """One answer, without its size. Raises EOFError where the broker ends the connection."""
        return self._exactly(int.from_bytes(self._exactly(4), "big"))

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise EOFError("the broker ended the connection")
            data += piece
        return bytes(data)

    def is_ended(self) -> bool:
        """Whether the broker ends the connection, without another byte, in good time."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
