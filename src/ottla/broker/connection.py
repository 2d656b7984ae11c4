"""One client's connection: answers the frames of its stream one after the other.

Kafka answers the requests of a connection in order and takes the next only when the last is
answered; so does this. Reading stops while requests wait, so what a connection can hold is bounded:
one frame under way (socket.request.max.bytes), one read's worth of small frames behind it, and the
responses up to the transport's high-water mark.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, cast

from ottla.broker.frame_stream import FrameStream

if TYPE_CHECKING:
    from ottla.broker.server import Server

logger = logging.getLogger("ottla.connection")

WRITE_BUFFER_BYTES = 4 << 20


class Connection(FrameStream):
    """Small frames are read into the server's one scratch buffer."""

    __slots__ = (
        "_drained", "_frames", "_reading", "_server", "_task", "_unsent_bytes", "active_ms",
        "connection_id", "host", "transport",
    )  # fmt: skip

    def __init__(self, server: Server) -> None:
        max_bytes = server.config.socket_request_max_bytes
        super().__init__(server.scratch, min_bytes=0, max_bytes=max_bytes)
        self._server = server
        self._frames: deque[memoryview] = deque()
        self._reading = True
        self._task: asyncio.Task[None] | None = None
        self._drained: asyncio.Event | None = None
        self._unsent_bytes = 0
        self.transport: asyncio.Transport | None = None
        self.host = "?"
        self.connection_id = 0
        self.active_ms = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not of asyncio's class, only of its shape.
        self.transport = transport = cast("asyncio.Transport", transport)
        address = transport.get_extra_info("peername")
        self.host = str(address[0]) if address else "?"
        self._server.size_buffers(transport.get_extra_info("socket"))
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self._server.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._frames.clear()
        self.forget()
        if self._drained is not None:
            self._drained.set()
        if self._task is not None:
            self._task.cancel()
        self._server.closed(self)

    def buffer_updated(self, count: int) -> None:
        self.active_ms = self._server.clock.monotonic_ms()
        super().buffer_updated(count)

    def refused(self, size_bytes: int) -> None:
        self.refuse(f"a frame of {size_bytes} bytes (socket.request.max.bytes allows fewer)")

    def refuse(self, why: str) -> None:
        """Ends the connection for bytes that are no request; one line names the peer."""
        logger.warning("closed the connection of %s: %s", self.host, why)
        if self.transport is not None:
            self.transport.abort()

    def received(self, frame: memoryview) -> None:
        self._frames.append(frame)
        if self._task is None:
            self._start()
        elif self._reading and self.transport is not None:
            self.transport.pause_reading()
            self._reading = False

    def _start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._answer_all())
        self._task.add_done_callback(self._answered)

    async def _answer_all(self) -> None:
        while self._frames:
            frame = self._frames.popleft()
            parts = await self._server.answer(frame.toreadonly(), self)
            transport = self.transport
            if transport is None or transport.is_closing():
                return
            if parts:
                transport.writelines(parts)
                if self._drained is not None:
                    await self._drained.wait()
        if not self._reading and self.transport is not None and not self.transport.is_closing():
            self._reading = True
            self.transport.resume_reading()

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            # Our own bug: said in full, and this client must not wait for an answer for ever.
            logger.error("failed on a request of %s", self.host, exc_info=error)
            if self.transport is not None:
                self.transport.abort()
        elif self._frames and self.transport is not None and not self.transport.is_closing():
            # A frame came between the last look at the queue and the end of the task. It was taken
            # for a second one: unless reading goes on, the end of a connection whose only request
            # waits (for records, for metadata) would not be noticed before the answer.
            self._start()
            if not self._reading:
                self._reading = True
                self.transport.resume_reading()

    def close(self) -> None:
        """Ends the connection once what was written has been sent; at once where it is stuck."""
        if self.transport is not None:
            if self._drained is not None:
                self.transport.abort()
            else:
                self.transport.close()

    @property
    def is_busy(self) -> bool:
        return self._task is not None

    def is_idle(self, before_ms: int) -> bool:
        """Since `before_ms` the client has sent nothing, and taken nothing of what it asked for."""
        if self._drained is None or self.transport is None:
            return self._task is None and self.active_ms < before_ms
        unsent_bytes = self.transport.get_write_buffer_size()
        if unsent_bytes != self._unsent_bytes:
            self._unsent_bytes = unsent_bytes
            self.active_ms = self._server.clock.monotonic_ms()
        return self.active_ms < before_ms

    def pause_writing(self) -> None:
        self._drained = asyncio.Event()

    def resume_writing(self) -> None:
        self.active_ms = self._server.clock.monotonic_ms()
        if self._drained is not None:
            self._drained.set()
            self._drained = None
