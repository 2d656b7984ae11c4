"""A listener that speaks WebSocket (RFC 6455): what is inside its frames goes to a connection as if
it had come over TCP.

The frames are read and written by the package `websockets` (the extra `websocket`), which does no
input or output of its own. No extension is agreed on: a compressed frame could be a bomb.

    opening: a request of HTTP, within HANDSHAKE_WITHIN_MS, from a known origin
    open:    frames of the agreed subprotocol, at most MAX_FRAMES_A_TURN in one turn of the loop
    closing: a close frame has been sent; the other side has CLOSED_WITHIN_MS to answer it, and to
             read what was sent before
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

from ottla.network.newcomers import HANDSHAKE_WITHIN_MS, Newcomers
from ottla.network.tls_transport import Reading, reading_of

if TYPE_CHECKING:
    from websockets.frames import Frame
    from websockets.http11 import Request

INSTALL_WEBSOCKET: Final = "pip install 'ottla[websocket]'"
KAFKA: Final = "kafka"
JSON: Final = "ottla.json"
CLOSED_WITHIN_MS: Final = 2_000
MAX_FRAMES_A_TURN: Final = 256
"""After these, other connections get their turn."""
FED_BYTES: Final = 2_048
"""So much is parsed at once: at most 340 frames."""
MAX_SENT_BYTES: Final = 262_144
"""Of one frame to a client, whose own limit is often 1 MiB."""
MAX_PINGS_A_SECOND: Final = 50
NORMAL, WRONG_KIND, BROKEN_RULE, TOO_BIG = 1000, 1003, 1008, 1009
_TLS_HELLO: Final = 0x16
_logger: Final = logging.getLogger("ottla.websocket")
_logger.setLevel(logging.ERROR)
"""The package would write each frame into a log for debugging."""


class Opened(Protocol):
    """What is notified of the changes of an open connection."""

    def connection_lost(self, error: Exception | None) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...


class OpenedBytes(Opened, Protocol):
    """What gets the content of binary frames; a FrameProtocol."""

    def get_buffer(self, sizehint: int) -> memoryview: ...
    def buffer_updated(self, count: int) -> None: ...


class OpenedTexts(Opened, Protocol):
    """What gets messages of text."""

    def received_text(self, text: bytes) -> None: ...


class WebSocketRules(NamedTuple):
    """What a listener accepts."""

    origins: tuple[str, ...] | None
    """Of pages; None: any."""
    max_frame_bytes: int
    monotonic_ms: Callable[[], int]


class WebSocket(asyncio.Protocol):
    """One connection. For the event loop's thread only."""

    def __init__(
        self,
        rules: WebSocketRules,
        newcomers: Newcomers,
        *,
        begun: Callable[[], None],
        release: Callable[[str], None],
        opened: Callable[[asyncio.Transport], OpenedBytes],
        opened_texts: Callable[[WebSocket], OpenedTexts],
        refused: Callable[[str, str], None],
    ) -> None:
        """`begun` is called when the connection is there. `release` says that one from that address
        has ended, until `opened` has been called with the transport of what it returns, or
        `opened_texts`, for a page. `refused` gets the address and the reason, for the log.
        """
        from websockets.server import ServerProtocol

        origins = None if rules.origins is None else [None, *rules.origins]
        self._protocol = ServerProtocol(
            origins=origins,
            subprotocols=[KAFKA, JSON],
            max_size=(None, rules.max_frame_bytes),
            logger=_logger,
        )
        self._rules = rules
        self._newcomers = newcomers
        self._begun = begun
        self._release = release
        self._open = opened
        self._open_texts = opened_texts
        self._refused = refused
        self._host = "?"
        self._transport: asyncio.Transport
        self._reading: Reading
        self._opened: Opened | None = None
        self._bytes: OpenedBytes | None = None
        self._texts: OpenedTexts | None = None
        """One of both is what is open."""
        self._text = bytearray()
        """A message of several frames."""
        self._events: deque[Frame] = deque()
        self._unread = memoryview(b"")
        """What the parser has not had yet."""
        self._is_paused = False
        """What is open wants no more for now."""
        self._is_stuck = False
        """The client reads more slowly than this end sends."""
        self._is_turn_due = False
        self._is_reading = True
        self._is_over = False
        """This end has said goodbye: what comes has no effect any more."""
        self._is_ended = False
        """The connection ends when all that has come has been passed on."""
        self._has_failed = False
        """What came was no WebSocket."""
        self._timer: asyncio.TimerHandle | None = None
        self._pings = 0
        self._pings_since_ms = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have asyncio's interface, but not its class.
        self._transport = cast("asyncio.Transport", transport)
        self._reading = reading_of(self._transport)
        address = transport.get_extra_info("peername")
        self._host = str(address[0]) if address else "?"
        self._begun()
        self._newcomers.add(self, self._transport.abort)
        self._end_after(HANDSHAKE_WITHIN_MS, self._too_late)

    def connection_lost(self, error: Exception | None) -> None:
        self._settled()
        self._events.clear()
        self._unread = memoryview(b"")
        if self._opened is None:
            self._release(self._host)
        else:
            self._opened.connection_lost(error)

    def data_received(self, data: bytes) -> None:
        if not self._unread:
            self._unread = memoryview(data)
        else:
            self._unread = memoryview(bytes(self._unread) + data)
        if not self._is_turn_due:
            self._turn()

    def eof_received(self) -> bool:
        return False  # and the transport closes itself

    def pause_writing(self) -> None:
        # Nor are pings answered: nobody reads the answers.
        self._is_stuck = True
        self._regulate()
        if self._opened is not None:
            self._opened.pause_writing()

    def resume_writing(self) -> None:
        self._is_stuck = False
        if self._opened is not None:
            self._opened.resume_writing()
        self._turn_soon()

    def _turn_soon(self) -> None:
        if not self._is_turn_due:
            self._is_turn_due = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """Passes on what has come, until it is too much for one turn."""
        self._is_turn_due = False
        left = MAX_FRAMES_A_TURN
        while not (self._is_paused or self._is_stuck or self._transport.is_closing()):
            if self._events:
                if not left:
                    self._turn_soon()
                    break
                left -= 1
                self._take(self._events.popleft())
            elif self._unread:
                part, self._unread = self._unread[:FED_BYTES], self._unread[FED_BYTES:]
                self._feed(bytes(part))
            else:
                break
        self._end_if_due()
        self._regulate()

    def _feed(self, data: bytes) -> None:
        protocol = self._protocol
        if self._opened is None and data[0] == _TLS_HELLO:
            self._refused(self._host, "it speaks TLS, and this listener does not: it is ws://")
            self._transport.abort()
            return
        protocol.receive_data(data)
        for event in protocol.events_received():
            if self._opened is None:
                self._answer(cast("Request", event))
            else:
                self._events.append(cast("Frame", event))
        if self._opened is None and protocol.handshake_exc is not None:
            self._refused(self._host, f"its WebSocket handshake: {protocol.handshake_exc}")
        self.flush()

    def _answer(self, request: Request) -> None:
        protocol = self._protocol
        response = protocol.accept(request)
        protocol.send_response(response)
        if protocol.handshake_exc is not None:
            return
        self.flush()
        self._settled()
        if protocol.subprotocol == JSON:
            self._opened = self._texts = self._open_texts(self)
        else:
            self._opened = self._bytes = self._open(WebSocketTransport(self))

    def _take(self, frame: Frame) -> None:
        from websockets.frames import Opcode

        if self._is_over:
            return
        if frame.opcode is Opcode.PING:
            self._pinged()
        elif frame.opcode is Opcode.TEXT and self._texts is None:
            self.fail(WRONG_KIND, "a text, and Kafka's protocol is binary")
        elif frame.opcode is Opcode.BINARY and self._texts is not None:
            self.fail(WRONG_KIND, f"bytes, and {JSON} is text")
        elif frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            if self._texts is None:
                self._pass_on(memoryview(frame.data))
            else:
                self._take_text(frame, self._texts)

    def _take_text(self, frame: Frame, texts: OpenedTexts) -> None:
        self._text += frame.data
        if len(self._text) > self._rules.max_frame_bytes:
            self.fail(TOO_BIG, f"a message of more than {self._rules.max_frame_bytes} bytes")
        elif frame.fin:
            text, self._text = bytes(self._text), bytearray()
            texts.received_text(text)

    def _pass_on(self, data: memoryview) -> None:
        opened = self._bytes
        assert opened is not None
        while data and not self._transport.is_closing():
            room = opened.get_buffer(len(data))
            count = min(len(room), len(data))
            room[:count] = data[:count]
            del room  # or its memory could not grow
            opened.buffer_updated(count)
            data = data[count:]

    def _pinged(self) -> None:
        now_ms = self._rules.monotonic_ms()
        if now_ms >= self._pings_since_ms + 1_000:
            self._pings, self._pings_since_ms = 0, now_ms
        self._pings += 1
        if self._pings > MAX_PINGS_A_SECOND:
            self.fail(BROKEN_RULE, f"more than {MAX_PINGS_A_SECOND} pings a second")

    def fail(self, code: int, reason: str) -> None:
        """Ends the connection because of what the client has sent."""
        self._refused(self._host, f"WebSocket: {reason}")
        self.close(code, reason)

    def send(self, data: Any) -> None:
        """As frames with bytes."""
        from websockets.protocol import State

        view = memoryview(data)
        while view and self._protocol.state is State.OPEN:
            self._protocol.send_binary(view[:MAX_SENT_BYTES])
            view = view[MAX_SENT_BYTES:]
            self.flush()

    def send_text(self, data: bytes) -> None:
        """As one message."""
        from websockets.protocol import State

        if self._protocol.state is not State.OPEN:
            return
        for at in range(0, max(len(data), 1), MAX_SENT_BYTES):
            part, is_last = data[at : at + MAX_SENT_BYTES], at + MAX_SENT_BYTES >= len(data)
            if at == 0:
                self._protocol.send_text(part, fin=is_last)
            else:
                self._protocol.send_continuation(part, fin=is_last)
        self.flush()

    def close(self, code: int = NORMAL, reason: str = "") -> None:
        """Says goodbye, and ends the connection when the other side has said so, too."""
        from websockets.protocol import State

        self._is_over = True
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(code, reason)
            self.flush()
            # The answer must be read.
            self.pause_reading(False)
            self._end_after(CLOSED_WITHIN_MS, self._transport.abort)
        else:
            self._end_if_due()

    def flush(self) -> None:
        """Sends what the package has to say."""
        for data in self._protocol.data_to_send():
            if data:
                self._transport.write(data)
            else:
                self._is_ended = True
        error = self._protocol.parser_exc
        if error is not None and self._opened is not None and not self._has_failed:
            self._has_failed = True
            self._refused(self._host, f"WebSocket: {error}")
        self._end_if_due()

    def _end_if_due(self) -> None:
        if self._transport.is_closing():
            return
        if self._is_ended and (self._is_over or not self._events):
            self._transport.close()
            # A client that reads nothing would keep what is unsent, and the connection, for ever.
            self._end_after(CLOSED_WITHIN_MS, self._transport.abort)

    def pause_reading(self, is_paused: bool) -> None:
        """What is open wants no more, or more again."""
        self._is_paused = is_paused
        if is_paused or not (self._events or self._unread):
            self._regulate()
        else:
            self._turn_soon()

    @property
    def transport(self) -> asyncio.Transport:
        return self._transport

    @property
    def is_closing(self) -> bool:
        from websockets.protocol import State

        return self._transport.is_closing() or self._protocol.state is not State.OPEN

    def _regulate(self) -> None:
        """Reads only if all that has come has been passed on."""
        if self._transport.is_closing():
            return
        waits = bool(self._events) or bool(self._unread)
        should_read = not (self._is_paused or self._is_stuck or waits)
        if should_read is not self._is_reading:
            self._is_reading = should_read
            if should_read:
                self._reading.resume_reading()
            else:
                self._reading.pause_reading()

    def _too_late(self) -> None:
        self._refused(
            self._host, f"its WebSocket handshake took more than {HANDSHAKE_WITHIN_MS} ms"
        )
        self._transport.abort()

    def _end_after(self, time_ms: int, end: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(time_ms / 1000, end)

    def _settled(self) -> None:
        self._newcomers.remove(self)
        if self._timer is not None:
            self._timer.cancel()


class WebSocketTransport(asyncio.Transport):
    """What is written to it is sent in frames."""

    def __init__(self, socket: WebSocket) -> None:
        super().__init__()
        self._socket = socket

    def write(self, data: Any) -> None:
        self._socket.send(data)

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        self._socket.close()

    def abort(self) -> None:
        self._socket.transport.abort()

    def is_closing(self) -> bool:
        return self._socket.is_closing

    def get_write_buffer_size(self) -> int:
        return self._socket.transport.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._socket.transport.set_write_buffer_limits(high, low)

    def pause_reading(self) -> None:
        self._socket.pause_reading(True)

    def resume_reading(self) -> None:
        self._socket.pause_reading(False)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._socket.transport.get_extra_info(name, default)


def load_websockets() -> None:
    """Raises ImportError, which says how to install it."""
    try:
        import websockets.server  # noqa: F401
    except ImportError:
        raise ImportError(f"WebSocket needs the package websockets: {INSTALL_WEBSOCKET}") from None
