"""One client's connection: cuts frames out of the stream and answers them one after the other.

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

if TYPE_CHECKING:
    from ottla.broker.server import Server

logger = logging.getLogger("ottla.connection")

FIRST_ALLOCATION_BYTES = 2 << 20
"""A frame gets this much room at first, and more only as its bytes really arrive."""
WRITE_BUFFER_BYTES = 4 << 20


class Connection(asyncio.BufferedProtocol):
    """Reads into the server's one scratch buffer; a large frame into a buffer of its own."""

    __slots__ = (
        "_drained", "_filled", "_frame", "_frame_bytes", "_frames", "_reading", "_rest", "_server",
        "_task", "_unsent_bytes", "active_ms", "connection_id", "host", "transport",
    )  # fmt: skip

    def __init__(self, server: Server) -> None:
        self._server = server
        self._rest = b""
        self._frame: bytearray | None = None
        self._frame_bytes = 0
        self._filled = 0
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
        self._frame = None
        if self._drained is not None:
            self._drained.set()
        if self._task is not None:
            self._task.cancel()
        self._server.closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._frame is not None:
            return memoryview(self._frame)[self._filled :]
        return self._server.scratch

    def buffer_updated(self, count: int) -> None:
        self.active_ms = self._server.clock.monotonic_ms()
        if self._frame is not None:
            self._filled += count
            self._frame_grew()
            return
        self._cut(self._server.scratch[:count])

    def _frame_grew(self) -> None:
        assert self._frame is not None
        if self._filled == self._frame_bytes:
            frame, self._frame = self._frame, None
            self._enqueue(memoryview(frame))
        elif self._filled == len(self._frame):
            larger = bytearray(min(self._frame_bytes, 2 * len(self._frame)))
            larger[: self._filled] = self._frame
            self._frame = larger

    def _cut(self, data: memoryview | bytes) -> None:
        if self._rest:
            data, self._rest = self._rest + data, b""
        position, end = 0, len(data)
        while end - position >= 4:
            size = int.from_bytes(data[position : position + 4], "big")
            if size > self._server.config.socket_request_max_bytes:
                self.refuse(f"a frame of {size} bytes (socket.request.max.bytes allows fewer)")
                return
            position += 4
            if end - position < size:
                self._begin_frame(size, data[position:])
                return
            self._enqueue(memoryview(bytes(data[position : position + size])))
            position += size
        self._rest = bytes(data[position:])

    def _begin_frame(self, size: int, start: memoryview | bytes) -> None:
        self._frame_bytes = size
        self._frame = bytearray(min(size, max(FIRST_ALLOCATION_BYTES, len(start) + 1)))
        self._frame[: len(start)] = start
        self._filled = len(start)

    def refuse(self, why: str) -> None:
        """Ends the connection for bytes that are no request; one line names the peer."""
        logger.warning("closed the connection of %s: %s", self.host, why)
        if self.transport is not None:
            self.transport.abort()

    def _enqueue(self, frame: memoryview) -> None:
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
            # waits (for records, for news) would not be noticed before the answer.
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
