"""Addresses of brokers, and whether anything listens there."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import Final, NamedTuple

from ottla.client.errors import AddressError, UnreachableError

CONNECT_TIMEOUT_S: Final = 3.0
DEFAULT_PORT: Final = 9092


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def addresses(bootstrap: str) -> list[Address]:
    """The addresses in `HOST:PORT,HOST:PORT`. Raises AddressError for anything else."""
    found: list[Address] = []
    for each in bootstrap.split(","):
        word = each.strip()
        if word.lower().startswith(("http://", "https://")):
            raise AddressError(
                f"bootstrap must be HOST:PORT, not {word!r}: Kafka's protocol is not HTTP.",
                word.rpartition("://")[2].rstrip("/"),
            )
        address = word.rpartition("://")[2]
        host, colon, port = address.rpartition(":")
        if not colon or address.endswith("]"):
            host, port = address, str(DEFAULT_PORT)
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise AddressError(f"bootstrap must be HOST:PORT, not {word!r}.", "localhost:9092")
        found.append(Address(host.strip("[]"), int(port)))
    return found


def why_unreachable(given: Iterable[tuple[str, int]]) -> str | None:
    """None as soon as one address accepts a connection; else the reason why the last one did
    not.
    """
    reason = ""
    for host, port in given:
        try:
            socket.create_connection((host, port), CONNECT_TIMEOUT_S).close()
            return None
        except OSError as error:
            reason = why_not_connected(error, host, CONNECT_TIMEOUT_S)
    return reason


def why_not_connected(error: OSError, host: str, within_s: float) -> str:
    """The system's reason as a part of a sentence."""
    if isinstance(error, TimeoutError):
        return f"cannot connect within {within_s:g} s"
    if isinstance(error, socket.gaierror):
        return f"unknown host {host!r}"
    return (error.strerror or str(error)).lower()


def check_reachable(bootstrap: str) -> None:
    """Connects to one of the addresses. Raises UnreachableError with the reason if none is
    reachable, and AddressError.
    """
    reason = why_unreachable(addresses(bootstrap))
    if reason is not None:
        raise UnreachableError(f"cannot reach a broker at {bootstrap}: {reason}.")
