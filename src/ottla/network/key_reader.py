"""Reads the public keys of a token's issuer (JWK Set): a file, or one GET of HTTP.

It blocks, so it runs in a thread. No proxy is used and no redirect followed, as the keys decide who
is believed.
"""

from __future__ import annotations

import http.client
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from ottla.security.sasl.signed_token import KeysError

MAX_KEYS_BYTES: Final = 1 << 20
SILENCE_MS: Final = 5_000
"""An address that has sent nothing for so long is given up."""
SCHEMES: Final = ("http", "https", "file")
_REDIRECTS: Final = range(300, 400)


class KeyFile:
    """`file:///etc/ottla/jwks.json`."""

    def __init__(self, url: str) -> None:
        self.path = Path(unquote(urlsplit(url).path))

    def read(self) -> bytes:
        """Raises KeysError."""
        try:
            with self.path.open("rb") as file:
                text = file.read(MAX_KEYS_BYTES + 1)
        except OSError as error:
            raise KeysError(error.strerror or str(error)) from None
        return _limited(text)

    def give_up(self) -> None:
        """A file is read at once."""


class KeyRequest:
    """One GET. `give_up` may be called from another thread: `read` then ends with a KeysError."""

    def __init__(
        self, url: str, authorities: str | None = None, silence_ms: int = SILENCE_MS
    ) -> None:
        """`authorities` is a PEM file with those that are trusted; None: the machine's."""
        self._silence_ms = silence_ms
        self._parts = urlsplit(url)
        self._authorities = authorities
        self._connection: http.client.HTTPConnection | None = None

    def read(self) -> bytes:
        """Raises KeysError."""
        parts = self._parts
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            self._connection = connection = self._connect(parts.hostname or "", parts.port)
        except OSError as error:
            raise KeysError(f"{self._authorities}: {error.strerror or error}") from None
        try:
            self.ask(connection, target)
            response = connection.getresponse()
            if response.status in _REDIRECTS:
                raise KeysError(f"it redirects to {str(response.getheader('Location'))[:200]}")
            text = _limited(response.read(MAX_KEYS_BYTES + 1))
            if response.status != http.HTTPStatus.OK:
                raise KeysError(f"it answers with HTTP status {response.status}{self.why(text)}")
            return text
        except http.client.RemoteDisconnected:
            raise KeysError("it closed the connection") from None
        except http.client.HTTPException as error:
            raise KeysError(f"it does not speak HTTP ({type(error).__name__})") from None
        except OSError as error:
            raise KeysError(str(error.strerror or error)) from None
        finally:
            connection.close()

    def ask(self, connection: http.client.HTTPConnection, target: str) -> None:
        """Sends the request."""
        connection.request("GET", target, headers={"Accept": "application/json"})

    def why(self, text: bytes) -> str:
        """What such an answer says about an error."""
        return ""

    def _connect(self, host: str, port: int | None) -> http.client.HTTPConnection:
        silence_s = self._silence_ms / 1000
        if self._parts.scheme != "https":
            return http.client.HTTPConnection(host, port, timeout=silence_s)
        context = ssl.create_default_context(cafile=self._authorities)
        return http.client.HTTPSConnection(host, port, timeout=silence_s, context=context)

    def give_up(self) -> None:
        """Ends `read`."""
        opened = None if self._connection is None else self._connection.sock
        if opened is not None:
            with suppress(OSError):
                # Not that of the TLS around it, which would take away what `read` is using.
                socket.socket.shutdown(opened, socket.SHUT_RDWR)


def _limited(text: bytes) -> bytes:
    if len(text) > MAX_KEYS_BYTES:
        raise KeysError(f"it has more than {MAX_KEYS_BYTES} bytes")
    return text
