"""A broker asks another: a server of straw answers, wrongly, late, or not at all."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ottla.network.peer import MAX_UNDER_WAY, Peer, PeerError, Probe, probe
from ottla.protocol.frames import read_request_header, write_response
from ottla.protocol.messages import messages_of
from ottla.testing.ports import free_ports

HEARTBEAT = 12


def beat(generation: int) -> Any:
    return messages_of(HEARTBEAT, 4, "request").HeartbeatRequest(generation_id=generation)


class Straw:
    """Hands each request to the test; sends what the test says."""

    def __init__(self) -> None:
        self.requests: asyncio.Queue[bytes] = asyncio.Queue()
        self.writers: list[asyncio.StreamWriter] = []
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                self.requests.put_nowait(await reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self.writers:
            writer.close()

    async def header(self) -> Any:
        return read_request_header(await asyncio.wait_for(self.requests.get(), 10))

    def answer(self, correlation_id: int, throttle_ms: int = 0) -> None:
        response = messages_of(HEARTBEAT, 4).HeartbeatResponse(throttle_time=throttle_ms)
        self.writers[-1].write(b"".join(write_response(response, correlation_id)))

    def send(self, frame: bytes) -> None:
        self.writers[-1].write(len(frame).to_bytes(4, "big") + frame)


@pytest.fixture
async def straw() -> AsyncIterator[Straw]:
    server = Straw()
    await server.start()
    yield server
    await server.close()


@pytest.fixture
async def peer(straw: Straw) -> AsyncIterator[Peer]:
    asked = Peer(
        "broker 2", lambda: ("127.0.0.1", straw.port), "broker-1-test", max_frame_bytes=8 << 20
    )
    yield asked
    asked.close()


async def test_answers_find_their_requests_in_any_order(peer: Peer, straw: Straw) -> None:
    tasks = [asyncio.create_task(peer.ask(beat(number), 10_000)) for number in range(3)]
    headers = [await straw.header() for _ in tasks]
    assert {each.client_id for each in headers} == {"broker-1-test"}
    for number in (2, 0, 1):
        straw.answer(headers[number].correlation_id, 100 + number)
    assert [(await task).throttle_time for task in tasks] == [100, 101, 102]
    assert len(straw.writers) == 1


async def test_a_large_answer_comes_whole(peer: Peer, straw: Straw) -> None:
    task = asyncio.create_task(peer.ask_json(20_001, {"a": 1}, 10_000))
    frame = await asyncio.wait_for(straw.requests.get(), 10)
    header = read_request_header(frame)
    assert header.key == 20_001
    assert header.client_id == "broker-1-test"
    assert json.loads(frame[header.body_position :]) == {"a": 1}
    text = "x" * (5 << 20)
    body = json.dumps({"text": text}).encode()
    straw.send(header.correlation_id.to_bytes(4, "big") + body)
    assert await task == {"text": text}


async def test_nobody_listens() -> None:
    port = free_ports(1)[0]
    peer = Peer("broker 2", lambda: ("localhost", port), "broker-1-test", max_frame_bytes=100)
    with pytest.raises(PeerError, match=f"nobody listens as broker 2 at localhost:{port}"):
        await peer.ask(beat(0), 10_000)


async def test_a_broker_that_is_not_registered() -> None:
    peer = Peer("broker 2", lambda: None, "broker-1-test", max_frame_bytes=100)
    with pytest.raises(PeerError, match="broker 2 is not registered"):
        await peer.ask(beat(0), 10_000)


async def test_no_answer_in_time_ends_the_connection_and_the_next_request_has_a_new_one(
    peer: Peer, straw: Straw
) -> None:
    behind = asyncio.create_task(peer.ask(beat(0), 60_000))
    await straw.header()
    with pytest.raises(PeerError, match="did not answer within 1 ms"):
        await peer.ask(beat(1), 1)
    with pytest.raises(PeerError, match="did not answer"):
        await behind
    await straw.header()
    task = asyncio.create_task(peer.ask(beat(2), 10_000))
    straw_header = await straw.header()
    straw.answer(straw_header.correlation_id, 5)
    assert (await task).throttle_time == 5
    assert len(straw.writers) == 2


async def test_a_connection_that_breaks_is_told_to_all_who_wait(peer: Peer, straw: Straw) -> None:
    tasks = [asyncio.create_task(peer.ask(beat(number), 10_000)) for number in range(2)]
    for _ in tasks:
        await straw.header()
    straw.writers[-1].close()
    for task in tasks:
        with pytest.raises(PeerError, match="broker 2 closed the connection"):
            await task


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"\x7f\xff\xff\xff", "sent a response of 2147483647 bytes"),
        (b"\xff\xff\xff\xff", "sent a response of -1 bytes"),
        (b"\0\0\0\x04\0\0\x10\x00", "answered request 4096, which was not asked"),
    ],
)
async def test_bytes_that_are_no_answer_end_the_connection(
    peer: Peer, straw: Straw, sent: bytes, reason: str
) -> None:
    task = asyncio.create_task(peer.ask(beat(0), 10_000))
    await straw.header()
    straw.writers[-1].write(sent)
    with pytest.raises(PeerError, match=reason):
        await task
    assert not peer.is_connected


async def test_a_response_that_cannot_be_decoded_ends_the_connection(
    peer: Peer, straw: Straw
) -> None:
    task = asyncio.create_task(peer.ask(beat(0), 10_000))
    header = await straw.header()
    straw.send(header.correlation_id.to_bytes(4, "big") + b"\0")
    with pytest.raises(PeerError, match="what is no response"):
        await task
    assert not peer.is_connected


async def test_requests_under_way_are_bounded(peer: Peer, straw: Straw) -> None:
    tasks = [asyncio.create_task(peer.ask(beat(each), 60_000)) for each in range(MAX_UNDER_WAY)]
    for _ in tasks:
        await straw.header()
    with pytest.raises(PeerError, match="requests to answer already"):
        await peer.ask(beat(0), 60_000)
    peer.close()
    for task in tasks:
        with pytest.raises(PeerError, match="no longer needed"):
            await task


async def test_who_gives_up_does_not_disturb_the_others(peer: Peer, straw: Straw) -> None:
    first = asyncio.create_task(peer.ask(beat(0), 10_000))
    second = asyncio.create_task(peer.ask(beat(1), 10_000))
    headers = [await straw.header() for _ in range(2)]
    first.cancel()
    for number, header in enumerate(headers):
        straw.answer(header.correlation_id, number)
    assert (await second).throttle_time == 1


async def test_knocking(straw: Straw) -> None:
    assert await probe("127.0.0.1", straw.port, 10_000) is Probe.ALIVE
    assert await probe("127.0.0.1", free_ports(1)[0], 10_000) is Probe.REFUSED
    assert await probe("no-such-host.invalid", 1, 10_000) is Probe.UNKNOWN


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b"\xff"])
async def test_an_answer_that_is_no_document_ends_the_connection(
    peer: Peer, straw: Straw, body: bytes
) -> None:
    task = asyncio.create_task(peer.ask_json(20_001, {}, 10_000))
    header = await straw.header()
    straw.send(header.correlation_id.to_bytes(4, "big") + body)
    with pytest.raises(PeerError, match="sent what is no JSON document"):
        await task
    assert not peer.is_connected


async def test_a_broker_that_moved_is_asked_where_it_is_now(straw: Straw) -> None:
    addresses = [("127.0.0.1", straw.port)]
    peer = Peer("broker 2", lambda: addresses[-1], "broker-1-test", max_frame_bytes=1 << 20)
    behind = asyncio.create_task(peer.ask(beat(0), 10_000))
    await straw.header()
    other = Straw()
    await other.start()
    addresses.append(("127.0.0.1", other.port))
    moved = asyncio.create_task(peer.ask(beat(1), 10_000))
    header = await other.header()
    with pytest.raises(PeerError, match="moved to another address"):
        await behind
    other.answer(header.correlation_id, 3)
    assert (await moved).throttle_time == 3
    peer.close()
    await other.close()


async def test_a_closed_peer_asks_nobody(peer: Peer, straw: Straw) -> None:
    peer.close()
    with pytest.raises(PeerError, match="the connection to broker 2 is closed"):
        await peer.ask(beat(0), 10_000)
    assert straw.writers == []


async def test_when_a_connection_was_lost_is_known_until_it_is_back(
    peer: Peer, straw: Straw
) -> None:
    assert peer.lost_at is None
    task = asyncio.create_task(peer.ask(beat(0), 10_000))
    await straw.header()
    assert peer.lost_at is None
    before = asyncio.get_running_loop().time()
    straw.writers[-1].close()
    with pytest.raises(PeerError):
        await task
    assert peer.lost_at is not None
    assert peer.lost_at >= before
    task = asyncio.create_task(peer.ask(beat(1), 10_000))
    straw.answer((await straw.header()).correlation_id)
    await task
    assert peer.lost_at is None
