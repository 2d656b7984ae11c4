"""An issuer of tokens for tests: signs them, gives them out, and shows its public keys."""

from __future__ import annotations

import json
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joserfc import jwk, jwt

AUDIENCE, ISSUER = "kafka", "https://issuer.example"


def encoded(value: Any) -> str:
    """A part of a token."""
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(text).rstrip(b"=").decode()


def claims_of(name: str, now_s: float, lasts_s: float = 600, **more: Any) -> dict[str, Any]:
    """The claims of a token; None takes one away."""
    given = {
        "sub": name,
        "aud": AUDIENCE,
        "iss": ISSUER,
        "iat": int(now_s),
        "exp": now_s + lasts_s,
        "scope": "kafka",
    } | more
    return {claim: value for claim, value in given.items() if value is not None}


class Issuer:
    """Its newest key signs."""

    def __init__(self, kind: str = "EC", size: str | int = "P-256") -> None:
        self._kind, self._size = kind, size
        self.keys: list[Any] = []
        self.new_key()

    def new_key(self) -> None:
        number = str(len(self.keys) + 1)
        key = jwk.generate_key(self._kind, self._size, {"kid": number})  # type: ignore[call-overload]
        self.keys.append(key)

    def key_set(self) -> bytes:
        """The JWK Set."""
        return json.dumps({"keys": [key.as_dict(private=False) for key in self.keys]}).encode()

    def sign(
        self, claims: dict[str, Any], algorithm: str = "ES256", *, with_id: bool = True, **more: Any
    ) -> str:
        key = self.keys[-1]
        header = {"alg": algorithm} | ({"kid": key.kid} if with_id else {}) | more
        return jwt.encode(header, claims, key, algorithms=[algorithm])

    def token(self, name: str, lasts_s: float = 600, **more: Any) -> str:
        """Of now."""
        return self.sign(claims_of(name, time.time(), lasts_s, **more))


class KeyServer:
    """Answers every GET with `text`, after the headers have been sent."""

    def __init__(self, text: bytes, port: int = 0) -> None:
        self.text = text
        self.status = 200
        self.asked = 0
        self.posted: list[tuple[str, bytes]] = []
        """Authorization and body of each POST, which `new_token` answers."""
        self.new_token: Callable[[], bytes] = bytes
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked += 1
                self.send_response(server.status)
                self.send_header("Location", "http://elsewhere.example/")
                self.send_header("Content-Length", str(len(server.text)))
                self.end_headers()
                self.wfile.write(server.text)

            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                server.posted.append((self.headers["Authorization"], self.rfile.read(size)))
                text = server.new_token()
                self.send_response(server.status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *given: Any) -> None:
                """The test's own output stays readable."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/keys"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def serving(text: bytes, port: int = 0) -> Iterator[KeyServer]:
    server = KeyServer(text, port)
    try:
        yield server
    finally:
        server.close()
