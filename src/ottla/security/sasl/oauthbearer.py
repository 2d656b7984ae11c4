"""OAUTHBEARER (RFC 7628, KIP-255): the client sends a token that somebody else has given it.

    client                                          server
    n,,^Aauth=Bearer TOKEN^A^A              -->
                                            <--     (empty: it is accepted)

    n,,^Aauth=Bearer TOKEN^A^A              -->
                                            <--     {"status":"invalid_token"}
    ^A                                      -->
                                            <--     the failure

As Kafka's OAuthBearerSaslServer. Extensions (KIP-342) are read and have no effect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

from ottla.security.sasl.mechanism import Identity, RefusedError

MAX_TOKEN_CHARACTERS: Final = 65_536
"""Nothing of a longer token is looked at."""
MAX_EXTENSIONS_CHARACTERS: Final = 4_096
INVALID_TOKEN: Final = "invalid_token"
INSUFFICIENT_SCOPE: Final = "insufficient_scope"
_END: Final = "\x01"
_FIRST: Final = re.compile(
    r"n,(?:a=(?P<acts_as>(?:[^=,\x01]|=2C|=3D)+))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[!-~ \t\r\n]+\x01)*)\x01",
    re.ASCII,
)
_AUTH: Final = re.compile(r"(?i:bearer) +(?P<token>[-_~+/.A-Za-z0-9]+=*)", re.ASCII)


class TokenError(Exception):
    """The token is not accepted; the text says why, without the token."""

    def __init__(self, reason: str, status: str = INVALID_TOKEN, scope: str = "") -> None:
        """`status` and `scope` are those of RFC 7628, section 3.2.2."""
        super().__init__(reason)
        self.status = status
        self.scope = scope

    def as_json(self) -> str:
        """What the client gets."""
        fields = {"status": self.status} | ({"scope": self.scope} if self.scope else {})
        return json.dumps(fields, separators=(",", ":"))


class OauthbearerExchange:
    """One authentication."""

    def __init__(self, identity_of: Callable[[str], Identity]) -> None:
        """`identity_of` checks a token. It raises TokenError, NotYetError."""
        self.identity: Identity | None = None
        self._identity_of = identity_of
        self._refusal: RefusedError | None = None
        """Of the token; the client has been told."""

    def answer(self, message: bytes) -> bytes:
        """Raises RefusedError, NotYetError."""
        if self._refusal is not None:
            raise self._refusal
        try:
            acts_as, token = _token_in(message)
            identity = self._identity_of(token)
        except TokenError as error:
            told = error.as_json()
            self._refusal = RefusedError(f"token refused: {error}", told)
            return told.encode()
        if acts_as not in ("", identity.name):
            raise RefusedError(f"user {identity.name!r} wants to act as {acts_as[:100]!r}")
        self.identity = identity
        return b""


def _token_in(message: bytes) -> tuple[str, str]:
    """Who the client wants to act as, and its token. Raises RefusedError, TokenError."""
    size = len(message)
    if size > MAX_TOKEN_CHARACTERS + MAX_EXTENSIONS_CHARACTERS:
        raise TokenError(f"it has about {size} bytes, more than {MAX_TOKEN_CHARACTERS}")
    found = _FIRST.fullmatch(message.decode("latin-1"))
    if found is None:
        raise RefusedError("the first message of OAUTHBEARER is wrong")
    pairs = [pair.partition("=") for pair in found["pairs"].split(_END)[:-1]]
    given = [value for name, _, value in pairs if name.lower() == "auth"]
    auth = _AUTH.fullmatch(given[0]) if len(given) == 1 else None
    if auth is None:
        raise RefusedError("the first message of OAUTHBEARER has not one auth=Bearer TOKEN")
    if len(auth["token"]) > MAX_TOKEN_CHARACTERS:
        raise TokenError(f"it has more than {MAX_TOKEN_CHARACTERS} bytes")
    acts_as = (found["acts_as"] or "").encode("latin-1").decode(errors="replace")
    return acts_as.replace("=2C", ",").replace("=3D", "="), auth["token"]
