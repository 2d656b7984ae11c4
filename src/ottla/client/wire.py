"""Frames on a connection: requests of one client, one after the other."""

from __future__ import annotations

import socket
import time
from struct import Struct
from typing import Any, Final

from ottla.client.addresses import Address
from ottla.client.errors import ClosedError, NoAnswerError, NotKafkaError
from ottla.protocol.errors import DecodeError
from ottla.protocol.frames import read_response, write_request

CORRELATION_ID: Final = 1
CORRELATION_BYTES: Final = 4
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
_HEADER: Final = Struct(">hhih")
_SIZE: Final = Struct(">i")


class Wire:
    """A connection whose errors are this room's. `connection` is a socket, with TLS or without."""

    def __init__(self, connection: socket.socket, address: Address, client_id: str) -> None:
        self.address = address
        self.certificate_ends_s: int | None = None
        """When the certificate of the other side expires, in s since 1970; None if not known."""
        self._socket = connection
        self._client_id = client_id

    def ask(self, request: Any, within_s: float) -> Any:
        """The response to a message of kio's. Raises NoAnswerError, ClosedError, NotKafkaError."""
        frame = self._exchange(write_request(request, CORRELATION_ID, self._client_id), within_s)
        try:
            return read_response(request.__api_key__, request.__version__, frame)[1]
        except DecodeError as error:
            raise NotKafkaError(
                f"the response from {self.address} is not a Kafka response: {error}."
            ) from None

    def ask_bytes(self, key: int, body: bytes, within_s: float) -> bytes:
        """The response's body to a request with header v1 and a body of its own, as Ottla's own
        requests have. Raises NoAnswerError, ClosedError.
        """
        client_id = self._client_id.encode()
        header = _HEADER.pack(key, 0, CORRELATION_ID, len(client_id)) + client_id
        frame = _SIZE.pack(len(header) + len(body)) + header + body
        return self._exchange(frame, within_s)[CORRELATION_BYTES:]

    def close(self) -> None:
        self._socket.close()

    def _exchange(self, frame: bytes, within_s: float) -> bytes:
        until = time.monotonic() + within_s
        try:
            self._socket.settimeout(within_s)
            self._socket.sendall(frame)
            (size,) = _SIZE.unpack(self._exactly(_SIZE.size, until))
            if not CORRELATION_BYTES <= size <= MAX_ANSWER_BYTES:
                raise NotKafkaError(
                    f"the response from {self.address} is not a Kafka response: its size is "
                    f"{size} bytes."
                )
            return self._exactly(size, until)
        except TimeoutError:
            raise NoAnswerError(f"no response from {self.address} within {within_s:g} s.") from None
        except (OSError, EOFError):
            # Brokers do this with a request for the controller when there is none.
            raise ClosedError(
                f"the broker at {self.address} closed the connection: "
                "it may have stopped, or the cluster has no controller."
            ) from None

    def _exactly(self, size: int, until: float) -> bytes:
        """That many bytes. Raises EOFError if the connection ends early, and OSError."""
        data = bytearray()
        while len(data) < size:
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            self._socket.settimeout(left_s)
            piece = self._socket.recv(min(size - len(data), 1 << 16))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)
