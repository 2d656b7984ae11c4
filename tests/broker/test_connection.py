"""Frames cut out of a stream; server and transport are of straw (`test_server` has real ones)."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.broker.connection import Connection
from ottla.broker.frame_stream import FIRST_ALLOCATION_BYTES

MAX_BYTES = 5 << 20


class StrawTransport:
    def __init__(self) -> None:
        self.written = bytearray()
        self.ended = False
        self.reading = True

    def get_extra_info(self, name: str) -> Any:
        return ("192.0.2.7", 1234)

    def set_write_buffer_limits(self, high: int) -> None:
        assert high > 0

    def writelines(self, parts: list[bytes]) -> None:
        self.written += b"".join(parts)

    def is_closing(self) -> bool:
        return self.ended

    def abort(self) -> None:
        self.ended = True

    close = abort

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class StrawServer:
    """Answers each frame with itself; a frame `hold` waits for `release`."""

    def __init__(self) -> None:
        self.scratch = memoryview(bytearray(1024))
        self.config = SimpleNamespace(socket_request_max_bytes=MAX_BYTES)
        self.clock = SimpleNamespace(monotonic_ms=lambda: 77)
        self.frames: list[bytes] = []
        self.release = asyncio.Event()
        self.open = 0

    def size_buffers(self, socket: Any) -> None:
        assert socket is not None

    def opened(self, connection: Connection) -> None:
        self.open += 1

    def closed(self, connection: Connection) -> None:
        self.open -= 1

    async def answer(self, frame: memoryview, connection: Connection) -> list[bytes]:
        assert frame.readonly
        self.frames.append(bytes(frame))
        if frame == b"hold":
            await self.release.wait()
        return [bytes(frame[:10])]


def connect() -> tuple[StrawServer, Connection, StrawTransport]:
    server: Any = StrawServer()
    connection, transport = Connection(server), StrawTransport()
    connection.connection_made(transport)  # type: ignore[arg-type]
    return server, connection, transport


def feed(connection: Connection, data: bytes) -> None:
    """As the event loop does: fills whatever room the connection gives."""
    position = 0
    while position < len(data):
        room = connection.get_buffer(-1)
        count = min(len(room), len(data) - position)
        assert count > 0
        room[:count] = data[position : position + count]
        connection.buffer_updated(count)
        position += count


def framed(*frames: bytes) -> bytes:
    return b"".join(len(each).to_bytes(4, "big") + each for each in frames)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@settings(deadline=None, max_examples=60)
@given(
    frames=st.lists(st.binary(max_size=3000), max_size=12),
    cuts=st.lists(st.integers(1, 2000), min_size=1, max_size=8),
)
def test_frames_arrive_whole_and_in_order_however_the_stream_is_cut(
    frames: list[bytes], cuts: list[int]
) -> None:
    async def main() -> None:
        server, connection, transport = connect()
        data, position, turn = framed(*frames), 0, 0
        while position < len(data):
            size = cuts[turn % len(cuts)]
            feed(connection, data[position : position + size])
            position, turn = position + size, turn + 1
            await asyncio.sleep(0)
        await settle()
        assert server.frames == frames
        assert transport.written == b"".join(each[:10] for each in frames)
        assert transport.reading

    asyncio.run(main())


@pytest.mark.parametrize("size", [MAX_BYTES + 1, 2**31 - 1, 2**32 - 1])
async def test_a_size_over_the_limit_ends_the_connection(size: int) -> None:
    server, connection, transport = connect()
    feed(connection, size.to_bytes(4, "big"))
    assert transport.ended
    assert server.frames == []


async def test_a_large_frame_takes_room_only_as_it_comes() -> None:
    server, connection, _ = connect()
    frame = bytes(MAX_BYTES)
    data = framed(frame)
    feed(connection, data[:100])
    assert connection._frame is not None
    assert len(connection._frame) == FIRST_ALLOCATION_BYTES
    feed(connection, data[100:])
    await settle()
    assert server.frames == [frame]
    assert connection._frame is None


async def test_reading_stops_while_requests_wait_and_goes_on_behind_them() -> None:
    server, connection, transport = connect()
    feed(connection, framed(b"hold", b"second"))
    await settle()
    assert not transport.reading
    assert connection.is_busy
    server.release.set()
    await settle()
    assert server.frames == [b"hold", b"second"]
    assert transport.written == b"holdsecond"
    assert transport.reading
    assert not connection.is_busy


async def test_nothing_is_answered_while_the_client_does_not_read() -> None:
    server, connection, transport = connect()
    connection.pause_writing()
    feed(connection, framed(b"a", b"b"))
    await settle()
    assert server.frames == [b"a"]
    connection.resume_writing()
    await settle()
    assert server.frames == [b"a", b"b"]
    assert transport.written == b"ab"


async def test_a_connection_that_goes_takes_its_request_along() -> None:
    server, connection, transport = connect()
    feed(connection, framed(b"hold", b"never"))
    await settle()
    connection.connection_lost(None)
    await settle()
    assert (server.open, connection.is_busy) == (0, False)
    server.release.set()
    await settle()
    assert server.frames == [b"hold"]
    assert transport.written == b""


async def test_the_host_and_the_time_of_the_last_bytes_are_kept() -> None:
    _, connection, _ = connect()
    feed(connection, b"\0")
    assert (connection.host, connection.active_ms) == ("192.0.2.7", 77)
