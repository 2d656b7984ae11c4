"""A token of OAUTHBEARER that this side shows: until when it lasts, and when another is got. Pure.

As Kafka's LoginAccessTokenValidator, which does not check the signature, and
ExpiringCredentialRefreshingLogin.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from typing import Any, Final, NamedTuple

from ottla.protocol.sasl_client import SaslError

_PARTS: Final = 3


class OwnToken(NamedTuple):
    """A token, and its times in ms since 1970."""

    text: str
    begins_ms: int | None
    expires_ms: int


class Refresh(NamedTuple):
    """When another token is got: `sasl.login.refresh.*`."""

    factor: float
    jitter: float
    min_period_ms: int
    buffer_ms: int

    def at_ms(self, token: OwnToken, now_ms: int, chance: float) -> int:
        """For a token that was got at `now_ms`; `chance` is random, from 0 to 1."""
        part = self.factor + self.jitter * chance
        expires_ms = token.expires_ms
        if now_ms + self.min_period_ms + self.buffer_ms > expires_ms:
            return now_ms + int((expires_ms - now_ms) * part)
        begins_ms = now_ms if token.begins_ms is None else token.begins_ms
        proposed_ms = begins_ms + int((expires_ms - begins_ms) * part)
        return max(min(proposed_ms, expires_ms - self.buffer_ms), now_ms + self.min_period_ms)


def read_token(text: str) -> OwnToken:
    """Raises SaslError if it is no signed token with an end, without showing it."""
    text = text.strip()
    parts = text.split(".")
    if len(parts) != _PARTS or not all(parts[:2]):
        raise SaslError("The token is not a JWT.")
    try:
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        claims = None
    if not isinstance(claims, dict):
        raise SaslError("The token's claims are not a JSON object.")
    expires_ms, begins_ms = _in_ms(claims.get("exp")), _in_ms(claims.get("iat"))
    if expires_ms is None:
        raise SaslError("The token has no claim exp.")
    return OwnToken(text, begins_ms, expires_ms)


def first_message(token: str) -> bytes:
    """What the client sends (RFC 7628)."""
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


def _in_ms(claim: Any) -> int | None:
    is_number = isinstance(claim, int | float) and not isinstance(claim, bool)
    # Beyond it: infinity, and what nobody means.
    return int(claim * 1000) if is_number and abs(claim) < 1e12 else None
