"""How a connection handles frames, with a fake transport (`test_listener` has real ones)."""

import asyncio
from typing import Any

import pytest

from ottla.network.client_session import ClientSession
from ottla.network.connection import JOINED_BYTES, MAX_FRAMES_A_TURN, Connection, Part
from ottla.network.frame_protocol import FrameProtocol
from ottla.network.frame_reader import FIRST_ALLOCATION_BYTES, MAX_GROWTH_BYTES, FrameReader
from ottla.network.handlers import EndConnectionError
from ottla.protocol.primitives import Buffer


class Transport:
    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.ended = False
        self.reading = True
        self.unsent_bytes = 0

    @property
    def written(self) -> bytes:
        return b"".join(self.writes)

    def set_write_buffer_limits(self, high: int) -> None:
        assert high > 0

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def write(self, data: bytes) -> None:
        self.writes.append(bytes(data))

    def writelines(self, parts: list[Part]) -> None:
        self.writes.append(b"".join(parts))

    def is_closing(self) -> bool:
        return self.ended

    def abort(self) -> None:
        self.ended = True

    close = abort

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True


class Client:
    """Answers each frame with its first bytes; some frames do more, see `answer`."""

    def __init__(self) -> None:
        self.transport = Transport()
        self.frames: list[bytes] = []
        self.tasks: list[asyncio.Task[Any] | None] = []
        """The task that answered each frame."""
        self.release = asyncio.Event()
        self.cancelled: list[bytes] = []
        self.ends = 0
        self.now_ms = 77
        self.throttle_ms = 1
        self.reader = FrameReader(min_bytes=0, max_bytes=1 << 26)
        self.connection = Connection(
            self.transport,  # type: ignore[arg-type]
            ClientSession(1, "192.0.2.7", "PLAINTEXT", "", 0),
            self.answer,
            monotonic_ms=lambda: self.now_ms,
            ended=self.ended,
            reader=self.reader,
        )

    def ended(self, connection: Connection) -> None:
        assert connection is self.connection
        self.ends += 1

    async def answer(self, frame: Any, session: ClientSession) -> list[Part]:
        assert session.host == "192.0.2.7"
        frame = bytes(frame)
        self.frames.append(frame)
        self.tasks.append(asyncio.current_task())
        try:
            if frame == b"hold":
                await self.release.wait()
            elif frame == b"within a moment":
                async with asyncio.timeout(0.001):
                    await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled.append(frame)
            raise
        except TimeoutError:
            return [b"late"]
        if frame.startswith(b"over"):
            session.throttle_ms = self.throttle_ms
        if frame == b"end":
            raise EndConnectionError("asked to")
        if frame == b"bug":
            raise AssertionError("our own bug")
        if frame == b"large":
            return [bytes(JOINED_BYTES + 1)]
        return [] if frame == b"none" else [frame[:1], frame[1:10]]

    def send_soon(self, *frames: bytes) -> None:
        buffers: list[Buffer] = [*frames]
        asyncio.get_running_loop().call_soon(self.connection.received, buffers)

    async def send(self, *frames: bytes) -> None:
        """Like the event loop, in a callback of its own."""
        self.send_soon(*frames)
        await settle()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
async def client() -> Client:
    return Client()


async def test_all_frames_of_one_read_are_answered_with_one_write(client: Client) -> None:
    await client.send(b"a", b"none", b"b", b"c")
    assert client.frames == [b"a", b"none", b"b", b"c"]
    assert client.transport.writes == [b"abc"]
    assert client.transport.reading


async def test_a_request_that_does_not_wait_is_answered_at_once(client: Client) -> None:
    seen: list[bytes] = []
    loop = asyncio.get_running_loop()
    client.send_soon(b"a")
    loop.call_soon(lambda: seen.append(client.transport.written))
    await settle()
    assert seen == [b"a"]


async def test_one_task_serves_a_connection(client: Client) -> None:
    await client.send(b"a")
    await client.send(b"hold", b"b")
    client.release.set()
    await settle()
    await client.send(b"c")
    assert client.transport.written == b"aholdbc"
    assert len(set(client.tasks)) == 1
    assert client.tasks[0] is not None


async def test_reading_pauses_while_requests_are_queued(client: Client) -> None:
    await client.send(b"hold", b"second")
    assert not client.transport.reading
    assert client.connection.is_busy
    client.release.set()
    await settle()
    assert client.frames == [b"hold", b"second"]
    assert client.transport.written == b"holdsecond"
    assert client.transport.reading
    assert not client.connection.is_busy


async def read_all(client: Client, data: bytes) -> list[int]:
    """As the transport: reads on in one turn of the loop as long as it may. Returns the bytes of
    each turn.
    """
    scratch = memoryview(bytearray(1 << 16))
    protocol = FrameProtocol(scratch, client.reader, lambda _: client.connection)
    protocol.connection_made(client.transport)  # type: ignore[arg-type]
    turns: list[int] = []

    def read_turn() -> None:
        begin = sum(turns)
        position = begin
        while position < len(data) and client.transport.reading:
            buffer = protocol.get_buffer(-1)
            piece = data[position : position + len(buffer)]
            buffer[: len(piece)] = piece
            protocol.buffer_updated(len(piece))
            position += len(piece)
        turns.append(position - begin)

    while sum(turns) < len(data) and len(turns) < 100:
        asyncio.get_running_loop().call_soon(read_turn)
        await asyncio.sleep(0)
    await settle()
    return turns


def framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


async def test_a_large_frame_is_read_a_part_in_each_turn(client: Client) -> None:
    """The client is on the same machine, and has sent all of it."""
    frame = b"large frame" + bytes(9 * MAX_GROWTH_BYTES)
    turns = await read_all(client, framed(frame))
    assert client.frames == [frame]
    assert max(turns) <= FIRST_ALLOCATION_BYTES + MAX_GROWTH_BYTES
    assert client.transport.reading


async def test_a_frame_of_a_megabyte_is_read_in_one_turn(client: Client) -> None:
    frame = b"as producers send" + bytes(1 << 20)
    assert await read_all(client, framed(frame)) == [len(frame) + 4]
    assert client.frames == [frame]


async def test_a_pause_for_requests_outlasts_one_for_a_large_frame(client: Client) -> None:
    await client.send(b"hold")
    client.reader.feed((4 * FIRST_ALLOCATION_BYTES).to_bytes(4, "big") + b"begun")
    while not client.reader.is_full:
        client.reader.filled(len(client.reader.room or b""))
    client.connection.received([])
    assert not client.transport.reading
    await client.send(b"second")
    assert not client.transport.reading
    client.release.set()
    await settle()
    assert client.frames == [b"hold", b"second"]
    assert client.transport.reading


async def test_reading_continues_while_a_single_request_waits(client: Client) -> None:
    await client.send(b"hold")
    assert client.transport.reading
    await client.send(b"second")
    assert not client.transport.reading
    client.release.set()
    await settle()
    assert client.transport.written == b"holdsecond"


async def test_a_waiting_request_learns_of_requests_behind_it(client: Client) -> None:
    session = client.connection.session
    seen: list[list[bytes]] = []
    await client.send(b"hold")
    session.arrived = lambda: seen.append(list(map(bytes, session.queued)))
    await client.send(b"second")
    assert seen == [[b"second"]]
    session.arrived = None
    client.release.set()
    await settle()
    assert not session.queued


async def test_responses_are_written_before_the_next_request_waits(client: Client) -> None:
    await client.send(b"a", b"b", b"hold")
    assert client.transport.written == b"ab"


async def test_a_large_response_is_written_at_once(client: Client) -> None:
    await client.send(b"large", b"b")
    assert list(map(len, client.transport.writes)) == [JOINED_BYTES + 1, 1]


async def test_other_connections_get_their_turn(client: Client) -> None:
    other = Client()
    counts: list[int] = []
    loop = asyncio.get_running_loop()
    client.send_soon(*[b"x"] * (2 * MAX_FRAMES_A_TURN + 5))
    other.send_soon(b"y")
    loop.call_soon(lambda: counts.append(len(client.frames)))
    await settle()
    assert counts == [MAX_FRAMES_A_TURN]
    assert other.transport.written == b"y"
    assert client.transport.written == b"x" * (2 * MAX_FRAMES_A_TURN + 5)


async def test_requests_wait_while_the_client_does_not_read(client: Client) -> None:
    client.connection.pause_writing()
    await client.send(b"a", b"b")
    assert client.frames == []
    assert not client.transport.reading
    client.connection.resume_writing()
    await settle()
    assert client.transport.written == b"ab"
    assert client.transport.reading


async def test_a_handlers_timeout_reaches_the_handler(client: Client) -> None:
    await client.send(b"within a moment", b"b")
    async with asyncio.timeout(60):
        while client.transport.written != b"lateb":
            await asyncio.sleep(0.001)
    await client.send(b"c")
    assert client.transport.written == b"latebc"


@pytest.mark.parametrize("when", ["at once", "soon", "later"])
async def test_a_connection_that_ends_cancels_its_request(client: Client, when: str) -> None:
    loop = asyncio.get_running_loop()
    client.send_soon(b"hold", b"never")
    if when == "at once":
        loop.call_soon(client.connection.lost, None)
    elif when == "soon":
        await asyncio.sleep(0)
        loop.call_soon(client.connection.lost, None)
    else:
        await settle()
        client.connection.lost(None)
    await settle()
    assert (client.ends, client.cancelled) == (1, [b"hold"])
    client.release.set()
    await settle()
    assert client.frames == [b"hold"]
    assert client.transport.written == b""


async def test_a_session_is_told_that_its_connection_has_ended(client: Client) -> None:
    told: list[str] = []
    client.connection.session.ended = lambda: told.append("ended")
    await client.send(b"a")
    assert (told, client.connection.session.has_ended) == ([], False)
    client.connection.lost(None)
    assert (told, client.connection.session.has_ended) == (["ended"], True)


async def test_a_connection_that_ends_in_its_first_turn_cancels_its_request() -> None:
    """Its task has not run by then."""
    clients = []

    def begin() -> None:
        client = Client()
        clients.append(client)
        client.connection.received([b"hold"])
        client.connection.lost(None)

    asyncio.get_running_loop().call_soon(begin)
    await settle()
    (client,) = clients
    assert (client.ends, client.cancelled) == (1, [b"hold"])


@pytest.mark.parametrize("before", [(b"a",), (b"hold",)])
async def test_a_request_that_cannot_be_answered_ends_the_connection(
    client: Client, before: tuple[bytes, ...], caplog: pytest.LogCaptureFixture
) -> None:
    client.release.set()
    await client.send(*before, b"end", b"never")
    assert client.transport.ended
    assert client.transport.written == before[0]
    assert client.frames == [*before, b"end"]
    assert "closed the connection from 192.0.2.7: asked to" in caplog.text


@pytest.mark.parametrize("before", [(), (b"hold",)])
async def test_an_internal_error_ends_the_connection(
    client: Client, before: tuple[bytes, ...], caplog: pytest.LogCaptureFixture
) -> None:
    await client.send(*before, b"bug", b"never")
    client.release.set()
    await settle()
    assert client.transport.ended
    assert client.frames == [*before, b"bug"]
    assert "failed on a request from 192.0.2.7" in caplog.text
    assert "AssertionError: our own bug" in caplog.text


async def test_a_size_over_the_limit_ends_the_connection(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.connection.refused(2**31 - 1)
    assert client.transport.ended
    assert "a frame of 2147483647 bytes" in caplog.text


async def test_a_connection_is_idle_if_the_client_neither_sends_nor_reads(client: Client) -> None:
    connection = client.connection
    await client.send(b"a")
    assert connection.active_ms == 77
    assert (connection.is_idle(77), connection.is_idle(78)) == (False, True)
    await client.send(b"hold")
    assert not connection.is_idle(78)
    client.release.set()
    await settle()
    connection.pause_writing()
    client.transport.unsent_bytes, client.now_ms = 100, 80
    assert not connection.is_idle(79)
    assert connection.is_idle(81)
    client.transport.unsent_bytes, client.now_ms = 50, 90
    assert not connection.is_idle(81)


@pytest.mark.parametrize("stuck", [False, True])
async def test_closing(client: Client, stuck: bool) -> None:
    ended: list[str] = []
    transport: Any = client.transport
    transport.abort = lambda: ended.append("abort")
    transport.close = lambda: ended.append("close")
    if stuck:
        client.connection.pause_writing()
    client.connection.close()
    assert ended == ["abort" if stuck else "close"]


async def test_a_throttled_client_has_its_answer_and_waits_with_the_next_request() -> None:
    client = Client()
    await client.send(b"over", b"next", b"last")
    assert (client.transport.written, client.frames) == (b"over", [b"over"])
    assert not client.transport.reading
    await asyncio.sleep(0.05)
    assert client.transport.written == b"overnextlast"
    assert client.transport.reading


async def test_a_throttled_client_is_not_read_beyond_a_request() -> None:
    client = Client()
    client.throttle_ms = 60_000
    await client.send(b"over")
    assert client.transport.reading  # the end of the connection must be seen
    await client.send(b"next")
    assert not client.transport.reading
    assert client.frames == [b"over"]
    assert not client.connection.is_busy
    assert client.connection.is_idle(client.now_ms + 1)
    client.connection.lost(None)


async def test_a_handler_that_waited_throttles_too() -> None:
    client = Client()
    client.throttle_ms = 60_000

    async def answer(frame: Any, session: ClientSession) -> list[Part]:
        await asyncio.sleep(0)
        client.frames.append(bytes(frame))
        session.throttle_ms = client.throttle_ms
        return [b"x"]

    connection = Connection(
        client.transport,  # type: ignore[arg-type]
        ClientSession(1, "192.0.2.7", "PLAINTEXT", "", 0),
        answer,
        monotonic_ms=lambda: 0,
        ended=lambda connection: None,
    )
    frames: list[Buffer] = [b"a", b"b"]
    asyncio.get_running_loop().call_soon(connection.received, frames)
    await asyncio.sleep(0.01)
    assert (client.transport.written, client.frames) == (b"x", [b"a"])
    connection.lost(None)
