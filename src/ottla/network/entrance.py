"""The first protocol of an accepted connection: it may have to wait before it is read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from ottla.network.admission import Admission, Arrival

EARLY_BYTES: Final = 1024
"""uvloop begins to read even if the protocol has said at once that it must not. It gets so much."""


class Entrance(asyncio.BufferedProtocol):
    """Hands the connection to its own protocol once it is admitted."""

    def __init__(
        self, admission: Admission, new_protocol: Callable[[], asyncio.BaseProtocol]
    ) -> None:
        self._admission = admission
        self._new_protocol = new_protocol
        self._transport: asyncio.Transport
        self._arrival: Arrival | None = None
        self._has_begun = False
        self._is_paused = False
        self._early = bytearray()
        self._room = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have asyncio's interface, but not its class.
        self._transport = cast("asyncio.Transport", transport)
        address = transport.get_extra_info("peername")
        host = str(address[0]) if address else "?"
        self._arrival = self._admission.arrive(host, self._begin, self._transport.abort)
        self._pause()

    def _pause(self) -> None:
        if not self._has_begun and not self._transport.is_closing():
            self._is_paused = True
            self._transport.pause_reading()

    def get_buffer(self, sizehint: int) -> bytearray:
        self._room = bytearray(EARLY_BYTES)
        return self._room

    def buffer_updated(self, count: int) -> None:
        self._early += self._room[:count]
        self._pause()

    def _begin(self) -> None:
        self._has_begun = True
        protocol = self._new_protocol()
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        if self._is_paused and not self._transport.is_closing():
            # Before the protocol gets anything: it may pause it again.
            self._transport.resume_reading()
            _pass_on(self._early, protocol)

    def connection_lost(self, error: Exception | None) -> None:
        if self._arrival is not None:
            self._admission.leave(self._arrival)


def _pass_on(data: bytearray, protocol: asyncio.BaseProtocol) -> None:
    if not isinstance(protocol, asyncio.BufferedProtocol):
        if data:
            cast("asyncio.Protocol", protocol).data_received(bytes(data))
        return
    left = memoryview(data)
    while left:
        room = cast("memoryview", protocol.get_buffer(len(left)))
        count = min(len(room), len(left))
        room[:count] = left[:count]
        protocol.buffer_updated(count)
        left = left[count:]
