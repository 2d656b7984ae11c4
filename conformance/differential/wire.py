"""One blocking connection that sends any request in any version, also wrong ones."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Final

from ottla.client import wire
from ottla.client.addresses import addresses
from ottla.client.errors import ClosedError, NoAnswerError

__all__ = ("ClosedError", "Wire")

TIMEOUT_SECONDS: Final = 30.0
CLIENT_ID: Final = "differential"


class Wire:
    """Connects at first use, and again after the broker closed the connection."""

    def __init__(self, address: str, introduce: Callable[[wire.Wire], None] | None = None) -> None:
        """`introduce` is called with each new connection."""
        (self._address,) = addresses(address)
        self._introduce = introduce
        self._wire: wire.Wire | None = None

    def ask(self, request: Any) -> Any:
        """The response. Raises ClosedError, or NoAnswerError without an answer."""
        try:
            return self._connected().ask(request, TIMEOUT_SECONDS)
        except NoAnswerError:
            self.close()
            raise

    def ask_bytes(self, key: int, body: bytes) -> bytes:
        """The response's body to version 0 of a request. Raises as `ask`."""
        try:
            return self._connected().ask_bytes(key, body, TIMEOUT_SECONDS)
        except NoAnswerError:
            self.close()
            raise

    def _connected(self) -> wire.Wire:
        if self._wire is None:
            connection = socket.create_connection(self._address, TIMEOUT_SECONDS)
            self._wire = wire.Wire(connection, self._address, CLIENT_ID)
            if self._introduce is not None:
                self._introduce(self._wire)
        return self._wire

    def close(self) -> None:
        """Ends the connection, if there is one."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None
