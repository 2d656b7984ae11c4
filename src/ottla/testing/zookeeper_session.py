"""Ends another client's ZooKeeper session, as an expiry would.

Any client that knows a session's id and password can take it over, and closing a session deletes
its ephemeral nodes. The id is the owner of any of these nodes. The password follows from the id:
the server derives it with Java's random generator and a seed that is a constant in its source
(ZooKeeperServer.generatePasswd).
"""

from __future__ import annotations

import socket
import struct
import time
from typing import Final

from ottla.testing.errors import KitError, is_for_the_test

__tracebackhide__ = is_for_the_test

_TIMEOUT_S: Final = 10.0
_MAX_TRIES: Final = 50
_PAUSE_S: Final = 0.05
_SECRET: Final = 0xB3415C00
_PASSWORD_BYTES: Final = 16
_CLOSE: Final = struct.pack(">ii", 1, -11)
# java.util.Random: a linear congruential generator of 48 bits.
_MULTIPLIER: Final = 0x5DEECE66D
_ADDEND: Final = 0xB
_MASK: Final = (1 << 48) - 1


class _ClosedError(Exception):
    """ZooKeeper closed the connection."""


def session_password(session_id: int) -> bytes:
    """The 16 bytes that the server generated for this session."""
    state = ((session_id ^ _SECRET) ^ _MULTIPLIER) & _MASK
    password = b""
    while len(password) < _PASSWORD_BYTES:
        state = (state * _MULTIPLIER + _ADDEND) & _MASK
        password += struct.pack("<I", state >> 16)
    return password


def end_session(address: str, session_id: int) -> None:
    """Take the session over and close it; raises KitError if the session does not exist."""
    server = f"ZooKeeper at {address}"
    for tried in range(_MAX_TRIES):
        try:
            with _connected(address) as connection:
                if not _taken_over(connection, session_id):
                    if tried:
                        return
                    raise KitError(f"{server}: session {session_id:#x} is over already")
                connection.sendall(struct.pack(">i", len(_CLOSE)) + _CLOSE)
                _packet(connection)
                return
        except (_ClosedError, ConnectionResetError, BrokenPipeError):
            # Either the owner reconnected and took the session back, or the session was closed
            # before the response arrived. The next try shows which.
            time.sleep(_PAUSE_S)
        except OSError as error:
            raise KitError(f"{server}: {error}") from None
    raise KitError(f"{server} closed the connection {_MAX_TRIES} times")


def _connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=_TIMEOUT_S)


def _taken_over(connection: socket.socket, session_id: int) -> bool:
    """Whether the connection took the session over; False if the session has ended."""
    password = session_password(session_id)
    # ConnectRequest: protocol version, last zxid seen, session timeout in ms, session, password.
    hello = struct.pack(">iqiqi", 0, 0, 10_000, session_id, len(password)) + password + b"\0"
    connection.sendall(struct.pack(">i", len(hello)) + hello)
    _, granted_ms, number = struct.unpack_from(">iiq", _packet(connection))
    return bool(granted_ms > 0 and number == session_id)


def _packet(connection: socket.socket) -> bytes:
    (length,) = struct.unpack(">i", _exactly(connection, 4))
    return _exactly(connection, length)


def _exactly(connection: socket.socket, count: int) -> bytes:
    taken = b""
    while len(taken) < count:
        part = connection.recv(count - len(taken))
        if not part:
            raise _ClosedError
        taken += part
    return taken
