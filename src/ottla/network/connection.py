"""One client's connection: answers its requests one at a time, in order.

Like Kafka, it takes the next request only after the previous one is answered. It stops reading
while requests wait, so a connection's memory is bounded: one incomplete frame
(socket.request.max.bytes), the small frames of one read, and responses up to the transport's
high-water mark. `connection_memory` limits the memory of all connections together.

A large frame is read a part in each turn of the loop. The transport reads on as long as there is
something to read: of a client on the same machine 32 MB in one turn, 30 ms.

Most handlers answer without waiting. So a request runs where its frame arrives, without a task of
its own. Only if its handler waits does the connection's single task continue it:

    received --> run the handler's first step --> answered: next frame; at the end, one write
                              |
                              +--> waits: the task awaits what the handler waits for,
                                          writes the response, continues with the next frame

The first step already runs as that task (`asyncio._enter_task`), so `asyncio.timeout` and similar
functions work in handlers.

A client over its quota is muted: it has its response, and its next request waits. One more is read,
or the end of the connection would go unnoticed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

from ottla.network.client_session import ClientSession
from ottla.network.continuation import carried_on
from ottla.network.frame_reader import FrameReader
from ottla.network.handlers import EndConnectionError
from ottla.protocol.primitives import Buffer

logger = logging.getLogger("ottla.connection")

WRITE_BUFFER_BYTES: Final = 4 << 20
"""With more unsent data than this, the connection answers no further requests."""
JOINED_BYTES: Final = 64 << 10
"""The responses of one turn are written together up to this size."""
COUNTED_BYTES: Final = 64 << 10
"""Written bytes are counted so many at a time."""
MAX_FRAMES_A_TURN: Final = 128
"""After these, other connections get their turn."""
_TLS_HELLO: Final = range(0x16030000, 0x16030500)
"""The size of a frame whose four bytes are the begin of a handshake of TLS (RFC 8446, section 5.1):
369 MB.
"""
_FAILED: Final = "failed on a request from %s"

Part: TypeAlias = bytes | bytearray | memoryview
Answer: TypeAlias = Callable[[Buffer, ClientSession], Coroutine[Any, Any, list[Part]]]
"""Returns the parts of the response to the request in a frame; empty if no response is due.
Raises EndConnectionError."""


class Connection:
    """The FrameReceiver of one client. For the event loop's thread only."""

    __slots__ = (
        "_answer", "_ended", "_frames", "_has_read_part", "_is_paused", "_is_reading",
        "_is_turn_due", "_is_waiting", "_monotonic_ms", "_reader", "_suspended", "_transport",
        "_uncounted_bytes", "_under_way_bytes", "_unmute", "_unsent_bytes", "_wake", "_worker",
        "_written",
        "active_ms", "session",
    )  # fmt: skip

    def __init__(
        self,
        transport: asyncio.Transport,
        session: ClientSession,
        answer: Answer,
        *,
        monotonic_ms: Callable[[], int],
        ended: Callable[[Connection], None],
        reader: FrameReader | None = None,
        written: Callable[[int], None] | None = None,
    ) -> None:
        """`reader` has the incomplete frame. `written` is called with the bytes of responses that
        were written, not with each.
        """
        self.session = session
        self.active_ms = monotonic_ms()
        self._transport = transport
        self._answer = answer
        self._monotonic_ms = monotonic_ms
        self._ended = ended
        self._reader = reader
        self._written = written
        self._uncounted_bytes = 0
        self._under_way_bytes = 0
        """Of the request whose handler waits."""
        self._frames: deque[Buffer] = deque()
        session.queued = self._frames
        self._is_reading = True
        self._has_read_part = False
        """Of a large frame, in this turn of the loop."""
        self._is_paused = False
        """The client reads more slowly than the broker sends."""
        self._is_turn_due = False
        self._is_waiting = False
        """A handler is waiting."""
        self._unmute: asyncio.TimerHandle | None = None
        """The client is muted until then."""
        self._suspended: tuple[Coroutine[Any, Any, list[Part]], Any] | None = None
        """The handler that the worker must continue, and what it waits for."""
        self._unsent_bytes = 0
        loop = asyncio.get_running_loop()
        self._wake: asyncio.Future[None] = loop.create_future()
        self._worker = loop.create_task(self._work())
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)

    def received(self, frames: list[Buffer]) -> None:
        self.active_ms = self._monotonic_ms()
        if frames:
            self._frames += frames
            if self._is_waiting or self._is_paused or self._is_turn_due or self._unmute is not None:
                self._regulate()
                if self.session.arrived is not None:
                    self.session.arrived()
            else:
                self._turn()
        elif self._reader is not None and self._reader.is_full and not self._has_read_part:
            self._has_read_part = True
            self._regulate()
            asyncio.get_running_loop().call_soon(self._read_on)

    def _read_on(self) -> None:
        self._has_read_part = False
        self._regulate()

    def refused(self, size_bytes: int) -> None:
        if size_bytes in _TLS_HELLO:
            self.refuse(
                f"it speaks TLS, and listener {self.session.listener} does not: its "
                "security.protocol must be PLAINTEXT or SASL_PLAINTEXT here"
            )
            return
        self.refuse(
            f"a frame of {size_bytes} bytes exceeds socket.request.max.bytes or the limit of its "
            "request type"
        )

    def refuse(self, why: str) -> None:
        """Ends the connection because of an invalid request; logs one line with the peer."""
        logger.warning("closed the connection from %s: %s", self.session.host, why)
        self._frames.clear()
        self._transport.abort()

    def _end(self, end: EndConnectionError) -> None:
        if end.last is None:
            self.refuse(str(end))
            return
        self._frames.clear()
        self._write(end.last)
        self._transport.close()

    def lost(self, error: Exception | None) -> None:
        self._frames.clear()
        if self._unmute is not None:
            self._unmute.cancel()
        # Not at once: a task that is cancelled before its first step runs none of its code. Then
        # nobody would end a handler that waits, and it would hold its locks for ever.
        self._worker.get_loop().call_soon(self._worker.cancel)
        self.session.has_ended = True
        if self.session.ended is not None:
            self.session.ended()
        self._ended(self)

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self.active_ms = self._monotonic_ms()
        self._is_paused = False
        if not self._is_waiting:
            self._turn_soon()

    def mute(self, throttle_ms: int) -> None:
        """Takes no request for so long."""
        if self._unmute is not None:
            self._unmute.cancel()
        loop = asyncio.get_running_loop()
        self._unmute = loop.call_later(throttle_ms / 1000, self._unmuted)

    def _unmuted(self) -> None:
        self._unmute = None
        if not self._is_waiting:
            self._turn_soon()

    def _turn_soon(self) -> None:
        if not self._is_turn_due:
            self._is_turn_due = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """Answers the received frames, as the worker, until a handler waits."""
        self._is_turn_due = False
        loop = self._worker.get_loop()
        asyncio.tasks._enter_task(loop, self._worker)
        try:
            self._answer_frames()
        except Exception:
            logger.exception(_FAILED, self.session.host)
            self._give_up()
        finally:
            asyncio.tasks._leave_task(loop, self._worker)

    def _give_up(self) -> None:
        """After a bug of our own: the client must not wait forever for a response."""
        self._frames.clear()
        self._transport.abort()

    def _answer_frames(self) -> None:
        frames, session, answer = self._frames, self.session, self._answer
        parts: list[Part] = []
        size_bytes = 0
        left = MAX_FRAMES_A_TURN
        while frames and not self._is_paused and self._unmute is None:
            if not left:
                self._turn_soon()
                break
            left -= 1
            frame = frames.popleft()
            coroutine = answer(frame, session)
            try:
                waits_for = coroutine.send(None)
            except StopIteration as done:
                parts += done.value
                size_bytes += sum(map(len, done.value))
                if session.throttle_ms:
                    self._mute_session()
            except EndConnectionError as end:
                self._write(parts)
                self._end(end)
                return
            else:
                self._write(parts)
                self._under_way_bytes = len(frame)
                self._suspend(coroutine, waits_for)
                return
            if size_bytes > JOINED_BYTES:
                self._transport.writelines(parts)
                self._count(size_bytes)
                parts, size_bytes = [], 0
        self._write(parts)
        self._regulate()

    def _mute_session(self) -> None:
        throttle_ms, self.session.throttle_ms = self.session.throttle_ms, 0
        self.mute(throttle_ms)

    def _suspend(self, coroutine: Coroutine[Any, Any, list[Part]], waits_for: Any) -> None:
        self._is_waiting = True
        self._suspended = coroutine, waits_for
        if not self._wake.done():
            self._wake.set_result(None)
        self._regulate()

    def _write(self, parts: list[Part]) -> None:
        if parts and not self._transport.is_closing():
            data = b"".join(parts)
            self._transport.write(data)
            self._count(len(data))

    def _count(self, size_bytes: int) -> None:
        self._uncounted_bytes += size_bytes
        if self._uncounted_bytes >= COUNTED_BYTES and self._written is not None:
            self._written(self._uncounted_bytes)
            self._uncounted_bytes = 0

    def _regulate(self) -> None:
        """Reads only while no frame waits. While a single request waits (for records, for
        metadata), reading continues; otherwise the end of the connection would go unnoticed.
        """
        should_read = not self._frames and not self._has_read_part
        if should_read is not self._is_reading and not self._transport.is_closing():
            self._is_reading = should_read
            if should_read:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    async def _work(self) -> None:
        """Continues suspended handlers until the connection ends."""
        while True:
            cancelled: asyncio.CancelledError | None = None
            try:
                await self._wake
            except asyncio.CancelledError as error:
                # The handler's timeout, or the end of the connection, came before this task
                # continued the handler: pass it on to the handler.
                cancelled = error
            if self._suspended is None:
                assert cancelled is not None
                raise cancelled
            coroutine, waits_for = self._suspended
            self._suspended = None
            self._wake = self._worker.get_loop().create_future()
            try:
                parts = await carried_on(coroutine, waits_for, cancelled)
                self._is_waiting = False
                if self.session.throttle_ms:
                    self._mute_session()
                if not self._transport.is_closing():
                    if parts:
                        self._transport.writelines(parts)
                        self._count(sum(map(len, parts)))
                    self._answer_frames()
            except EndConnectionError as end:
                self._is_waiting = False
                self._end(end)
            except Exception:
                logger.exception(_FAILED, self.session.host)
                self._is_waiting = False
                self._give_up()

    def close(self) -> None:
        """Ends the connection after sending what was written; at once if the client is stuck."""
        if self._is_paused:
            self._transport.abort()
        else:
            self._transport.close()

    @property
    def request_bytes(self) -> int:
        """Of the incomplete frame, of those that wait, and of the one that is under way."""
        begun = 0 if self._reader is None else self._reader.held_bytes
        under_way = self._under_way_bytes if self._is_waiting else 0
        return begun + under_way + sum(map(len, self._frames))

    @property
    def unsent_bytes(self) -> int:
        """Of responses that the client has not read."""
        return self._transport.get_write_buffer_size()

    @property
    def host(self) -> str:
        """The client's address."""
        return self.session.host

    def abort(self) -> None:
        """Ends the connection at once."""
        self._frames.clear()
        self._transport.abort()

    @property
    def is_busy(self) -> bool:
        return self._is_waiting or (bool(self._frames) and self._unmute is None)

    def is_idle(self, before_ms: int) -> bool:
        """Since `before_ms` the client has sent nothing, and read nothing of its responses."""
        if self.is_busy and not self._is_paused:
            return False
        unsent_bytes = self._transport.get_write_buffer_size()
        if unsent_bytes != self._unsent_bytes:
            self._unsent_bytes = unsent_bytes
            self.active_ms = self._monotonic_ms()
        return self.active_ms < before_ms
