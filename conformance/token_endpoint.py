"""An issuer of tokens, as librdkafka's test 0126 expects it.

It answers as OauthbearerOIDCApp does, the endpoint of librdkafka's own test cluster (trivup 0.15):
for a secret (RFC 6749, section 4.4), for a signed assertion (RFC 7523), and for a query as to the
metadata service of Azure; at `badformat` with a token whose signature is wrong, at `expire` with
one that is over. For tests: every secret is the right one.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from joserfc import jwk, jwt
from joserfc.errors import JoseError

from ottla.testing.ports import HOST

AUDIENCE: Final = "api://default"
ISSUER: Final = "issuer"
ALGORITHM: Final = "RS256"
SCOPES: Final = ("test", "test-scope", "api://1234-abcd/.default")
LASTS_S: Final = 60
ASSERTION: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
OF_METADATA: Final = ("client_id", "resource", "api-version")
"""What a query as to a metadata service must have."""
_KEY_BITS: Final = 2048


def _key() -> jwk.RSAKey:
    return jwk.RSAKey.generate_key(_KEY_BITS, {"kid": "conformance"})


class Issuer:
    """Its key, and that of the clients that sign assertions."""

    def __init__(self) -> None:
        self.key = _key()
        self.client_key = _key()

    def token(self, lasts_s: int = LASTS_S) -> str:
        now_s = int(time.time())
        claims = {"exp": now_s + lasts_s, "iat": now_s, "iss": ISSUER, "aud": AUDIENCE}
        claims |= {"sub": "subject", "client_id": "subject"}
        return jwt.encode({"alg": ALGORITHM, "kid": self.key.kid}, claims, self.key)

    def key_set(self) -> dict[str, Any]:
        """The JWK Set."""
        return {"keys": [self.key.as_dict(private=False)]}

    def why_refused(self, body: dict[str, list[str]], *, shows_secret: bool) -> str:
        """Of a request for a token; empty: it gets one."""
        (scope,) = body.get("scope", [SCOPES[0]])
        if scope not in SCOPES:
            return f"invalid scope {scope}"
        (kind,) = body.get("grant_type", [""])
        if kind == "client_credentials":
            return "" if shows_secret else "no Authorization"
        if kind != ASSERTION:
            return f"invalid grant_type {kind}"
        try:
            (text,) = body["assertion"]
            claims = jwt.decode(text, self.client_key, algorithms=[ALGORITHM]).claims
        except (KeyError, ValueError, JoseError) as error:
            return f"invalid assertion: {error}"
        return "" if claims.get("sub") else "the assertion has no sub"


class _Handler(BaseHTTPRequestHandler):
    issuer: Issuer

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/keys":
            self._say(HTTPStatus.OK, self.issuer.key_set())
            return
        missing = [name for name in OF_METADATA if name not in parse_qs(parts.query)]
        if missing or self.headers["Metadata"] != "true":
            self._say(HTTPStatus.BAD_REQUEST, {"error": f"missing: {missing}"})
        else:
            self._say(HTTPStatus.OK, {"access_token": self.issuer.token()})

    def do_POST(self) -> None:
        body = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        if self.path == "/retrieve/badformat":
            self._say(HTTPStatus.OK, {"access_token": self.issuer.token() + "invalid"})
        elif self.path == "/retrieve/expire":
            self._say(HTTPStatus.OK, {"access_token": self.issuer.token(-1)})
        elif why := self.issuer.why_refused(body, shows_secret="Authorization" in self.headers):
            self._say(HTTPStatus.BAD_REQUEST, {"error": why})
        else:
            self._say(HTTPStatus.OK, {"access_token": self.issuer.token()})

    def _say(self, status: HTTPStatus, answer: dict[str, Any]) -> None:
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *given: Any) -> None:
        """The suites' own output stays readable."""


@contextmanager
def serving(issuer: Issuer) -> Iterator[str]:
    """Yields the address, to which `/keys` or `/retrieve` is added."""
    handler = type("Handler", (_Handler,), {"issuer": issuer})
    server = ThreadingHTTPServer((HOST, 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
