"""What every mechanism is: an exchange of messages that ends with a name or a refusal."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, NamedTuple, Protocol

PLAIN: Final = "PLAIN"
SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)


class RefusedError(Exception):
    """The client is not who it says it is, or its message is wrong.

    The text says why, for the broker's own log. The client gets one wording for all reasons: it
    must not learn which users exist.
    """

    def __init__(self, reason: str, told: str | None = None) -> None:
        """`told` is for a client that may know more than that one wording."""
        super().__init__(reason)
        self.told = told


class NotYetError(Exception):
    """The answer needs what is being fetched."""

    def __init__(self, fetched: Awaitable[None]) -> None:
        """After `fetched`, the same message can be answered."""
        super().__init__("not yet")
        self.fetched = fetched


class Identity(NamedTuple):
    """Who the client is."""

    name: str
    expires_ms: int | None = None
    """When its credentials end, in ms since 1970; None: never."""


class Exchange(Protocol):
    """One authentication. It is over once `identity` is set."""

    identity: Identity | None

    def answer(self, message: bytes) -> bytes:
        """The server's answer to the client's message. Raises RefusedError, NotYetError."""
