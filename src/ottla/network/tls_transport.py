"""The transport of an accepted connection with TLS: aiofastnet's, or else the loop's own.

aiofastnet calls OpenSSL directly, which takes less CPU time for what producers send
(`docs/decisions/tls-transport.md`). It finds the OpenSSL of Python's own ssl module; where that is
linked into Python, or aiofastnet has no build, the loop's transport serves.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import traceback
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol


class Reading(Protocol):
    """What stops and continues the reading of a connection."""

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


def reading_of(transport: asyncio.Transport) -> Reading:
    """By which the reading of this transport must be stopped and continued."""
    if transport.get_extra_info("ssl_object") is None or not is_direct():
        return transport
    return DrainedReading(transport)


class DrainedReading:
    """Stops aiofastnet's reading in the next turn of the loop, not at once.

    At once it would keep the records of TLS that it has read and not decrypted. When it continues,
    aiofastnet 1.2 looks at the socket first, and if nothing has come there, at nothing else: these
    requests would wait until the client sends more. In a turn it reads 256 KB at most, and all of
    that is decrypted.
    """

    def __init__(self, inner: Reading) -> None:
        self._inner = inner
        self._is_wanted = True
        self._is_reading = True
        self._is_due = False

    def pause_reading(self) -> None:
        self._is_wanted = False
        if self._is_reading and not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._pause)

    def resume_reading(self) -> None:
        self._is_wanted = True
        if not self._is_reading:
            self._is_reading = True
            self._inner.resume_reading()

    def _pause(self) -> None:
        self._is_due = False
        if not self._is_wanted and self._is_reading:
            self._is_reading = False
            self._inner.pause_reading()


@cache
def is_direct() -> bool:
    """Whether aiofastnet can be used. The first call imports it, which takes 60 ms or more: a
    broker without TLS does without.
    """
    try:
        from aiofastnet.openssl_compat import OPENSSL_DYN_LIBS
    except ImportError:
        return False
    return OPENSSL_DYN_LIBS is not None


async def accept(
    protocol_factory: Callable[[], asyncio.BaseProtocol],
    accepted: socket.socket,
    context: ssl.SSLContext,
    within_s: float,
) -> asyncio.BaseTransport:
    """Shakes hands with the client. Raises ssl.SSLError, and OSError: ConnectionAbortedError or
    TimeoutError if it took more than `within_s`, others if the client left.
    """
    loop = asyncio.get_running_loop()
    if is_direct():
        import aiofastnet

        if loop.get_exception_handler() is None:
            loop.set_exception_handler(_report)
        try:
            transport, _ = await aiofastnet.connect_accepted_socket(
                loop, protocol_factory, accepted, ssl=context, ssl_handshake_timeout=within_s
            )
        except OSError as error:
            # Its frames hold the transport, and with it 20 KB of OpenSSL's, until a full collection
            # of garbage: a thousand clients that leave would take 20 MB.
            traceback.clear_frames(error.__traceback__)
            raise
        return transport
    transport, _ = await loop.connect_accepted_socket(
        protocol_factory, accepted, ssl=context, ssl_handshake_timeout=within_s
    )
    return transport


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Of a client that leaves during its handshake, aiofastnet 1.2 gives the loop a class instead
    of an exception, which logging cannot print. It is no error, and the acceptor is told.
    """
    if not isinstance(context.get("exception"), type):
        loop.default_exception_handler(context)
