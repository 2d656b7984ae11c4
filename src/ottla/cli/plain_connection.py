"""A plain connection to a broker, for requests for which librdkafka has no call.

A broker that is suspended, or behind a broken network, may still accept connections (the operating
system does) but not respond. So if several addresses are given, each one but the last is first
asked for its API versions, which a live broker answers at once.
"""

from __future__ import annotations

import socket
from typing import Final

from ottla.cli.client import CONNECT_TIMEOUT_S, addresses, check_reachable
from ottla.cli.failures import Failed
from ottla.cli.plain_frames import framed, received
from ottla.cli.plain_security import NONE, Security, secured

SILENT_AFTER_S: Final = 2.0
MAX_VERSIONS_BYTES: Final = 1 << 20
API_VERSIONS: Final = 18
# Addresses that did not respond are tried last by later calls in this process.
_silent: Final[set[tuple[str, int]]] = set()


def connected(bootstrap: str, answer_timeout_s: float, security: Security = NONE) -> socket.socket:
    """A connection to the first address whose broker responds.

    Reads and writes on it take at most `answer_timeout_s`. Raises Failed if no address accepts a
    connection, or a broker refuses the certificate or the user.
    """
    candidates = sorted(addresses(bootstrap), key=_silent.__contains__)
    for number, address in enumerate(candidates, 1):
        try:
            connection = socket.create_connection(address, CONNECT_TIMEOUT_S)
            connection = secured(connection, address[0], security)
        except (OSError, EOFError):
            continue
        if number < len(candidates) and not answers(connection):
            connection.close()
            _silent.add(address)
            continue
        connection.settimeout(answer_timeout_s)
        return connection
    check_reachable(bootstrap)
    raise Failed(f"no broker responds at {bootstrap}.")


def answers(connection: socket.socket) -> bool:
    """Whether a broker responds to ApiVersions on this connection."""
    connection.settimeout(SILENT_AFTER_S)
    try:
        connection.sendall(framed(API_VERSIONS, b""))
        received(connection, MAX_VERSIONS_BYTES)
    except (OSError, EOFError):
        return False
    return True


def broker_answers(host: str, port: int) -> bool:
    """Whether a broker at this address accepts a connection and responds."""
    try:
        with socket.create_connection((host, port), CONNECT_TIMEOUT_S) as connection:
            return answers(connection)
    except OSError:
        return False
