"""Requests to another broker: a fake server answers correctly, wrongly, late, or not at all."""

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


class FakeServer:
    """Passes each request to the test; sends what the test returns."""

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
async def server() -> AsyncIterator[FakeServer]:
    server = FakeServer()
    await server.start()
    yield server
    await server.close()


@pytest.fixture
async def peer(server: FakeServer) -> AsyncIterator[Peer]:
    asked = Peer(
        "broker 2", lambda: ("127.0.0.1", server.port), "broker-1-test", max_frame_bytes=8 << 20
    )
    yield asked
    asked.close()


async def test_responses_are_matched_in_any_order(peer: Peer, server: FakeServer) -> None:
    tasks = [asyncio.create_task(peer.ask(beat(number), 10_000)) for number in range(3)]
    headers = [await server.header() for _ in tasks]
    assert {each.client_id for each in headers} == {"broker-1-test"}
    for number in (2, 0, 1):
        server.answer(headers[number].correlation_id, 100 + number)
    assert [(await task).throttle_time for task in tasks] == [100, 101, 102]
    assert len(server.writers) == 1


async def test_a_large_response_arrives_complete(peer: Peer, server: FakeServer) -> None:
    task = asyncio.create_task(peer.ask_json(20_001, {"a": 1}, 10_000))
    frame = await asyncio.wait_for(server.requests.get(), 10)
    header = read_request_header(frame)
    assert header.key == 20_001
    assert header.client_id == "broker-1-test"
    assert json.loads(frame[header.body_position :]) == {"a": 1}
    text = "x" * (5 << 20)
    body = json.dumps({"text": text}).encode()
    server.send(header.correlation_id.to_bytes(4, "big") + body)
    assert await task == {"text": text}


async def test_a_refused_connection_is_an_error() -> None:
    port = free_ports(1)[0]
    peer = Peer("broker 2", lambda: ("localhost", port), "broker-1-test", max_frame_bytes=100)
    with pytest.raises(PeerError, match=f"broker 2 at localhost:{port} refused the connection"):
        await peer.ask(beat(0), 10_000)


async def test_a_broker_that_is_not_registered_is_an_error() -> None:
    peer = Peer("broker 2", lambda: None, "broker-1-test", max_frame_bytes=100)
    with pytest.raises(PeerError, match="broker 2 is not registered"):
        await peer.ask(beat(0), 10_000)


async def test_a_timeout_ends_the_connection_and_the_next_request_reconnects(
    peer: Peer, server: FakeServer
) -> None:
    behind = asyncio.create_task(peer.ask(beat(0), 60_000))
    await server.header()
    with pytest.raises(PeerError, match="did not answer within 1 ms"):
        await peer.ask(beat(1), 1)
    with pytest.raises(PeerError, match="did not answer"):
        await behind
    await server.header()
    task = asyncio.create_task(peer.ask(beat(2), 10_000))
    last_header = await server.header()
    server.answer(last_header.correlation_id, 5)
    assert (await task).throttle_time == 5
    assert len(server.writers) == 2


async def test_a_lost_connection_fails_all_waiting_requests(peer: Peer, server: FakeServer) -> None:
    tasks = [asyncio.create_task(peer.ask(beat(number), 10_000)) for number in range(2)]
    for _ in tasks:
        await server.header()
    server.writers[-1].close()
    for task in tasks:
        with pytest.raises(PeerError, match="broker 2 closed the connection"):
            await task


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"\x7f\xff\xff\xff", "sent a response of 2147483647 bytes"),
        (b"\xff\xff\xff\xff", "sent a response of -1 bytes"),
        (b"\0\0\0\x04\0\0\x10\x00", "answered request 4096, which was not sent"),
    ],
)
async def test_invalid_bytes_end_the_connection(
    peer: Peer, server: FakeServer, sent: bytes, reason: str
) -> None:
    task = asyncio.create_task(peer.ask(beat(0), 10_000))
    await server.header()
    server.writers[-1].write(sent)
    with pytest.raises(PeerError, match=reason):
        await task
    assert peer.lost_at is not None


async def test_a_response_that_cannot_be_decoded_ends_the_connection(
    peer: Peer, server: FakeServer
) -> None:
    task = asyncio.create_task(peer.ask(beat(0), 10_000))
    header = await server.header()
    server.send(header.correlation_id.to_bytes(4, "big") + b"\0")
    with pytest.raises(PeerError, match="sent an invalid response"):
        await task
    assert peer.lost_at is not None


async def test_unanswered_requests_are_limited(peer: Peer, server: FakeServer) -> None:
    tasks = [asyncio.create_task(peer.ask(beat(each), 60_000)) for each in range(MAX_UNDER_WAY)]
    for _ in tasks:
        await server.header()
    with pytest.raises(PeerError, match="unanswered requests"):
        await peer.ask(beat(0), 60_000)
    peer.close()
    for task in tasks:
        with pytest.raises(PeerError, match="was disconnected by this broker"):
            await task


async def test_a_cancelled_request_does_not_affect_the_others(
    peer: Peer, server: FakeServer
) -> None:
    first = asyncio.create_task(peer.ask(beat(0), 10_000))
    second = asyncio.create_task(peer.ask(beat(1), 10_000))
    headers = [await server.header() for _ in range(2)]
    first.cancel()
    for number, header in enumerate(headers):
        server.answer(header.correlation_id, number)
    assert (await second).throttle_time == 1


async def test_probe_shows_whether_a_listener_accepts_connections(server: FakeServer) -> None:
    assert await probe("127.0.0.1", server.port, 10_000) is Probe.ALIVE
    assert await probe("127.0.0.1", free_ports(1)[0], 10_000) is Probe.REFUSED
    assert await probe("no-such-host.invalid", 1, 10_000) is Probe.UNKNOWN


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"7", b"\xff", pytest.param(b"[" * 5000, id="deep")]
)
async def test_a_response_that_is_not_json_ends_the_connection(
    peer: Peer, server: FakeServer, body: bytes
) -> None:
    task = asyncio.create_task(peer.ask_json(20_001, {}, 10_000))
    header = await server.header()
    server.send(header.correlation_id.to_bytes(4, "big") + body)
    with pytest.raises(PeerError, match="sent a response that is not a JSON document"):
        await task
    assert peer.lost_at is not None


async def test_a_broker_that_moved_is_reached_at_its_new_address(server: FakeServer) -> None:
    addresses = [("127.0.0.1", server.port)]
    peer = Peer("broker 2", lambda: addresses[-1], "broker-1-test", max_frame_bytes=1 << 20)
    behind = asyncio.create_task(peer.ask(beat(0), 10_000))
    await server.header()
    other = FakeServer()
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


async def test_a_closed_peer_sends_nothing(peer: Peer, server: FakeServer) -> None:
    peer.close()
    with pytest.raises(PeerError, match="the connection to broker 2 is closed"):
        await peer.ask(beat(0), 10_000)
    assert server.writers == []


async def test_the_time_of_a_loss_is_kept_until_a_response(peer: Peer, server: FakeServer) -> None:
    assert peer.lost_at is None
    task = asyncio.create_task(peer.ask(beat(0), 10_000))
    await server.header()
    assert peer.lost_at is None
    before = asyncio.get_running_loop().time()
    server.writers[-1].close()
    with pytest.raises(PeerError):
        await task
    assert peer.lost_at is not None
    assert peer.lost_at >= before
    task = asyncio.create_task(peer.ask(beat(1), 10_000))
    correlation_id = (await server.header()).correlation_id
    assert peer.lost_at is not None, "a dying process may accept a connection"
    server.answer(correlation_id)
    await task
    assert peer.lost_at is None
