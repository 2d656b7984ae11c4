"""Whom a quota is for, and what it limits (KIP-13, KIP-55, KIP-599, KIP-612).

A name is None where the quota does not ask for it, and DEFAULT for all that have none of their own.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

DEFAULT: Final = ""
"""As a name: everybody without a quota of their own."""
USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
"""The types of names, as in requests."""


class Kind(Enum):
    """What a quota limits; its name in requests and in the tree."""

    PRODUCE = "producer_byte_rate"
    """Bytes a second in Produce requests."""
    FETCH = "consumer_byte_rate"
    """Bytes a second of records in responses to Fetch."""
    REQUEST = "request_percentage"
    """Percent of the time of the broker's event loop."""
    MUTATION = "controller_mutation_rate"
    """Partitions created and deleted a second."""
    CONNECTION = "connection_creation_rate"
    """Connections a second, from one address."""

    # Enum's own is in Python, and each request looks up several.
    __hash__ = object.__hash__


OF_CLIENTS: Final = (Kind.PRODUCE, Kind.FETCH, Kind.REQUEST, Kind.MUTATION)
"""The kinds for users and client ids; addresses have the other one."""


class Entity(NamedTuple):
    """Whom a quota is for. Either an address, or a user, a client id, or both."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    def names(self) -> dict[str, str]:
        """The names that are given, by type."""
        given = ((USER, self.user), (CLIENT_ID, self.client_id), (IP, self.ip))
        return {type: name for type, name in given if name is not None}

    def __str__(self) -> str:
        return ", ".join(
            f"{type} {name}" if name else f"default {type}" for type, name in self.names().items()
        )
