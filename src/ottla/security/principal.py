"""Who a client is, as Kafka writes it: "User:alice" (KafkaPrincipal, KIP-11)."""

from __future__ import annotations

from typing import Final, NamedTuple

USER: Final = "User"
"""The type of every principal that authentication yields."""
WILDCARD: Final = "*"
"""The name in an ACL that is for every principal of its type."""


class Principal(NamedTuple):
    """A client's identity."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal(USER, "ANONYMOUS")
"""A client that has not authenticated."""


def parse_principal(text: str) -> Principal:
    """The principal of a text such as "User:alice"; its name may contain colons.

    Raises ValueError, with what is wrong (SecurityUtils.parseKafkaPrincipal).
    """
    kind, colon, name = text.partition(":")
    if not kind or not colon or not name:
        raise ValueError(f"expected a principal as Type:name, for example User:alice; got {text!r}")
    return Principal(kind, name)
