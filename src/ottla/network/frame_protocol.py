"""Feeds a FrameReader from an event loop transport, plain or TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

from ottla.network.frame_reader import FrameReader
from ottla.protocol.primitives import Buffer


class FrameReceiver(Protocol):
    """One end of a connection."""

    def received(self, frames: list[Buffer]) -> None:
        """All frames that one read completed."""

    def refused(self, size_bytes: int) -> None:
        """A frame's size is out of bounds: the connection must end."""

    def lost(self, error: Exception | None) -> None:
        """The connection has ended."""

    def pause_writing(self) -> None:
        """The peer reads more slowly than this end sends."""

    def resume_writing(self) -> None:
        """The peer has read what was sent."""


class FrameProtocol(asyncio.BufferedProtocol):
    """The event loop's side of one connection."""

    __slots__ = ("_connected", "_reader", "_receiver", "_scratch")

    def __init__(
        self,
        scratch: memoryview,
        reader: FrameReader,
        connected: Callable[[asyncio.Transport], FrameReceiver],
    ) -> None:
        """Many connections may share `scratch`: it holds nothing between two reads."""
        self._scratch = scratch
        self._reader = reader
        self._connected = connected
        self._receiver: FrameReceiver

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have asyncio's interface, but not its class.
        self._receiver = self._connected(cast("asyncio.Transport", transport))

    def connection_lost(self, error: Exception | None) -> None:
        self._reader.forget()
        self._receiver.lost(error)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.room or self._scratch

    def buffer_updated(self, count: int) -> None:
        reader = self._reader
        if reader.room is None:
            frames = reader.feed(self._scratch[:count])
            if reader.bad_size is not None:
                if frames:
                    self._receiver.received(frames)
                self._receiver.refused(reader.bad_size)
                return
        else:
            frames = reader.filled(count)
        self._receiver.received(frames)

    def pause_writing(self) -> None:
        self._receiver.pause_writing()

    def resume_writing(self) -> None:
        self._receiver.resume_writing()
