"""PLAIN (RFC 4616): the client sends a name and a password, in one message.

As Kafka's PlainSaslServer. The passwords are in the settings of the listener: `user_<name>` of its
sasl.jaas.config.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from ottla.security.sasl.mechanism import Identity, RefusedError


class PlainExchange:
    """One authentication."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        """`passwords` by user name."""
        self.identity: Identity | None = None
        self._passwords = passwords

    def answer(self, message: bytes) -> bytes:
        """Always empty. Raises RefusedError."""
        words = message.decode(errors="replace").split("\0")
        if len(words) != 3:
            raise RefusedError(f"a PLAIN message has 3 parts; this one has {len(words)}")
        acts_as, name, password = words
        if not name or not password:
            raise RefusedError("no user name or no password")
        expected = self._passwords.get(name)
        # Also for a user who does not exist, so that it takes the same time.
        is_right = hmac.compare_digest((expected or "").encode(), password.encode())
        if expected is None or not is_right:
            raise RefusedError(f"wrong user name or password (user {name!r})")
        if acts_as not in ("", name):
            raise RefusedError(f"user {name!r} wants to act as {acts_as!r}")
        self.identity = Identity(name)
        return b""
