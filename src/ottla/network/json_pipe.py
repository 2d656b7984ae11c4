"""Requests to the connection of a page, as if they had come over TCP, and their responses.

So a page has the same authentication, ACLs, quotas and limits as any client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from ottla.network.frame_protocol import FrameProtocol
from ottla.network.frame_reader import FrameReader
from ottla.protocol.frames import read_response, write_request

MAX_RESPONSE_BYTES: Final = 64 << 20


class PipeClosedError(Exception):
    """The connection has ended: there will be no response."""


class Outside(Protocol):
    """What the page is connected with."""

    @property
    def transport(self) -> asyncio.Transport: ...
    def pause_reading(self, is_paused: bool) -> None: ...


class JsonPipe(asyncio.Transport):
    """The transport of a connection whose client is in the same process. For the event loop's
    thread only.
    """

    def __init__(self, outside: Outside, closed: Callable[[], None]) -> None:
        """`closed` is called when the connection wants to end."""
        super().__init__()
        self._outside = outside
        self._closed = closed
        self._inside: FrameProtocol
        self._reader = FrameReader(min_bytes=4, max_bytes=MAX_RESPONSE_BYTES)
        self._waiting: dict[int, tuple[Any, asyncio.Future[Any]]] = {}
        """Requests without a response yet, by correlation id."""
        self._last_id = 0
        self._is_closing = False

    def connect(self, inside: FrameProtocol) -> None:
        self._inside = inside
        inside.connection_made(self)

    async def ask(self, request: Any, client_id: str = "ottla.json") -> Any:
        """The response. Raises PipeClosedError, DecodeError."""
        if self._is_closing:
            raise PipeClosedError
        self._last_id += 1
        response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[self._last_id] = request, response
        frame = memoryview(write_request(request, self._last_id, client_id))
        # A connection answers as its own task, which cannot begin inside of another one.
        asyncio.get_running_loop().call_soon(self._send, frame)
        return await response

    def _send(self, frame: memoryview) -> None:
        while frame and not self._is_closing:
            room = self._inside.get_buffer(len(frame))
            count = min(len(room), len(frame))
            room[:count] = frame[:count]
            del room
            self._inside.buffer_updated(count)
            frame = frame[count:]

    def lost(self, error: Exception | None) -> None:
        """The page has gone."""
        self._is_closing = True
        self._give_up()
        self._inside.connection_lost(error)

    def _give_up(self) -> None:
        for _, response in self._waiting.values():
            if not response.done():
                response.set_exception(PipeClosedError())
        self._waiting.clear()

    def write(self, data: Any) -> None:
        for frame in self._reader.feed(data):
            waiting = self._waiting.pop(int.from_bytes(frame[:4], "big"), None)
            if waiting is not None and not waiting[1].done():
                request, response = waiting
                key, version = request.__api_key__, request.__version__
                response.set_result(read_response(key, version, frame)[1])

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._give_up()
            self._closed()

    def abort(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return self._is_closing

    def get_write_buffer_size(self) -> int:
        return self._outside.transport.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Those of the page's own transport stay."""

    def pause_reading(self) -> None:
        """Two requests at most are under way: a command's and a fetch."""

    def resume_reading(self) -> None:
        """See `pause_reading`."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._outside.transport.get_extra_info(name, default)
