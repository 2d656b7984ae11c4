"""The listener in front of a fake node: how it handles valid and invalid frames."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.config import BrokerConfig
from ottla.network.connection_limits import ConnectionLimits
from ottla.network.connection_memory import PART, ConnectionMemory
from ottla.network.dispatcher import Dispatcher
from ottla.network.handlers import EndConnectionError, Handler, Handlers
from ottla.network.listener import Listener
from ottla.network.request_context import RequestContext
from ottla.network.throttling import Throttling
from ottla.protocol.frames import read_response, write_request
from ottla.protocol.messages import messages_of
from ottla.runtime.clock import SystemClock
from ottla.runtime.cpu_thread import CpuThread

HEARTBEAT, API_VERSIONS, PRODUCE = 12, 18, 0

Context = RequestContext[Any]


async def heartbeat(request: Any, context: Context) -> Any:
    if request.group_id == "end":
        raise EndConnectionError("asked to")
    if request.group_id == "bug":
        raise AssertionError("our own bug")
    if request.group_id == "slow":
        context.broker.under_way.set()
        await asyncio.sleep(0.05)
    if request.group_id == "held":
        context.broker.under_way.set()
        await context.broker.release.wait()
    return context.messages.HeartbeatResponse(throttle_time=request.generation_id)


async def versions(request: Any, context: Context) -> Any:
    return context.messages.ApiVersionsResponse(error_code=35 if request is None else 0)


async def journey(body: bytes, context: Context) -> bytes:
    return body[::-1]


async def produce(request: Any, context: Context) -> Any:
    if request.acks == 0:
        return None
    (topic,) = request.topic_data
    size = len(topic.partition_data[0].records)
    return context.messages.ProduceResponse(throttle_time=size)


FOUND = {
    HEARTBEAT: Handler(HEARTBEAT, 0, 4, heartbeat),
    API_VERSIONS: Handler(API_VERSIONS, 0, 4, versions),
    PRODUCE: Handler(PRODUCE, 3, 13, produce),
    20_000: Handler(20_000, 0, 0, journey, takes_json=True),
}


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, request: Any, correlation_id: int) -> None:
        self.writer.write(write_request(request, correlation_id, "test"))

    async def frame(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(size)

    async def is_closed(self) -> bool:
        try:
            return await asyncio.wait_for(self.reader.read(), 60) == b""
        except ConnectionResetError:
            return True


def beat(generation: int, group: str = "g", version: int = 4) -> Any:
    build = messages_of(HEARTBEAT, version, "request")
    return build.HeartbeatRequest(group_id=group, generation_id=generation)


def produce_request(size: int, acks: int = 1) -> Any:
    build = messages_of(PRODUCE, 9, "request")
    data = build.PartitionProduceData(records=b"x" * size)
    topics = (build.TopicProduceData(name="t", partition_data=(data,)),)
    return build.ProduceRequest(acks=acks, topic_data=topics)


class Server(Listener):
    """A listener with its own handlers; the first slow request sets `under_way`."""

    def __init__(self, config: BrokerConfig) -> None:
        self.under_way = asyncio.Event()
        self.limits = ConnectionLimits(config)
        self.release = asyncio.Event()
        """Answers the requests of the group "held"."""
        broker = SimpleNamespace(under_way=self.under_way, release=self.release)
        forwarding = SimpleNamespace(is_controller=True)
        self.throttling = Throttling(config, SystemClock(), lambda session: False)
        super().__init__(
            config.endpoints[0],
            config,
            Dispatcher(
                broker,
                Handlers((), FOUND.get),
                forwarding,
                cpu_thread=CpuThread(),
                throttling=self.throttling,
            ),
            self.limits,
            throttling=self.throttling,
            next_connection_id=itertools.count(1).__next__,
            monotonic_ms=lambda: time.monotonic_ns() // 1_000_000,
        )


async def new_server(config: BrokerConfig) -> Server:
    server = Server(config)
    await server.listen()
    await server.start()
    return server


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    given = {"listeners": "PLAINTEXT://127.0.0.1:0", "max.connections": "3"}
    server = await new_server(BrokerConfig(given))
    yield server
    await server.close(grace_ms=0)


async def under_way(server: Server) -> None:
    """A slow request was received and is not answered yet."""
    await asyncio.wait_for(server.under_way.wait(), 20)


async def connect(server: Server) -> Client:
    return Client(*await asyncio.open_connection("127.0.0.1", server.port))


async def test_responses_are_in_the_order_of_the_requests(server: Server) -> None:
    client = await connect(server)
    client.send(beat(0, "slow"), 0)
    for number in range(1, 200):
        client.send(beat(number), number)
    for number in range(200):
        correlation_id, response = read_response(HEARTBEAT, 4, await client.frame())
        assert (correlation_id, response.throttle_time) == (number, number)


@pytest.mark.parametrize("step", [1, 3, 5])
async def test_frames_may_arrive_in_any_pieces(server: Server, step: int) -> None:
    client = await connect(server)
    data = write_request(beat(1), 1, "me") + write_request(beat(2), 2, None)
    for position in range(0, len(data), step):
        client.writer.write(data[position : position + step])
        await client.writer.drain()
        await asyncio.sleep(0)
    assert [read_response(HEARTBEAT, 4, await client.frame())[0] for _ in range(2)] == [1, 2]


@pytest.mark.parametrize("size", [1, 250_000, 300_000, 2 << 20, 5 << 20, 9_000_000])
async def test_a_small_frame_after_a_large_one(server: Server, size: int) -> None:
    client = await connect(server)
    client.send(produce_request(size), 1)
    client.send(beat(5), 2)
    assert read_response(PRODUCE, 9, await client.frame())[1].throttle_time == size
    assert read_response(HEARTBEAT, 4, await client.frame())[1].throttle_time == 5


async def test_no_response_is_sent_if_none_is_due(server: Server) -> None:
    client = await connect(server)
    client.send(produce_request(10, acks=0), 1)
    client.send(beat(5), 2)
    assert read_response(HEARTBEAT, 4, await client.frame())[0] == 2


BAD = {
    "2 GB": (2**31 - 1).to_bytes(4, "big") + b"begin",
    "negative size": b"\xff\xff\xff\xff" + b"begin",
    "http": b"GET / HTTP/1.1\r\n\r\n",
    "empty frame": bytes(4),
    "unknown key": b"\0\0\0\x0a" + b"\x7f\xff\0\0\0\0\0\x01\xff\xff",
    "unknown version": b"\0\0\0\x0a" + b"\0\x0c\0\x63\0\0\0\x01\xff\xff",
    "cut header": b"\0\0\0\x03abc",
    "cut body": b"\0\0\0\x0a" + b"\0\x0c\0\x00\0\0\0\x01\xff\xff",
    "old produce": b"\0\0\0\x0a" + b"\0\x00\0\x02\0\0\0\x01\xff\xff",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
async def test_invalid_bytes_end_their_connection_with_one_line_that_names_the_peer(
    server: Server, bad: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    other, client = await connect(server), await connect(server)
    client.writer.write(bad)
    assert await client.is_closed()
    (line,) = (record.getMessage() for record in caplog.records)
    assert "127.0.0.1" in line
    other.send(beat(1), 1)
    assert read_response(HEARTBEAT, 4, await other.frame())[0] == 1


async def test_unknown_version_of_api_versions_is_answered_in_version_0(server: Server) -> None:
    client = await connect(server)
    client.writer.write(b"\0\0\0\x0a" + b"\0\x12\0\x63\0\0\0\x01\xff\xff")
    assert (await client.frame())[:6] == b"\0\0\0\x01" + b"\0\x23"


async def test_handler_may_end_the_connection(server: Server) -> None:
    client = await connect(server)
    client.send(beat(1, "end"), 1)
    assert await client.is_closed()


async def test_an_internal_error_ends_only_its_connection(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    client, other = await connect(server), await connect(server)
    client.send(beat(1, "bug"), 1)
    assert await client.is_closed()
    assert "AssertionError: our own bug" in caplog.text
    other.send(beat(1), 1)
    assert read_response(HEARTBEAT, 4, await other.frame())[0] == 1


async def test_json_request(server: Server) -> None:
    client = await connect(server)
    body = b"\x4e\x20\0\0\0\0\0\x07\xff\xff" + b"abc"
    client.writer.write(len(body).to_bytes(4, "big") + body)
    assert await client.frame() == b"\0\0\0\x07" + b"cba"


async def test_connections_over_the_limit_wait_until_another_ends(server: Server) -> None:
    clients = [await connect(server) for _ in range(3)]
    over, last = await connect(server), await connect(server)
    over.send(beat(1), 7)
    last.send(beat(1), 8)
    for client in clients:
        client.send(beat(1), 1)
        assert read_response(HEARTBEAT, 4, await client.frame())[0] == 1
    assert (server.limits.count, server.limits.waiting) == (3, 2)
    clients[0].writer.close()
    assert read_response(HEARTBEAT, 4, await over.frame())[0] == 7
    over.send(beat(1), 9)  # it is read on
    assert read_response(HEARTBEAT, 4, await over.frame())[0] == 9
    assert (server.limits.count, server.limits.waiting) == (3, 1)
    clients[1].writer.close()
    assert read_response(HEARTBEAT, 4, await last.frame())[0] == 8


async def test_a_connection_that_waits_ends_with_its_listener(server: Server) -> None:
    clients = [await connect(server) for _ in range(4)]
    async with asyncio.timeout(20):
        while not server.limits.waiting:
            await asyncio.sleep(0.005)
    await server.close(grace_ms=0)
    for client in clients:
        assert await client.is_closed()
    assert (server.limits.count, server.limits.held) == (0, 0)


async def test_only_idle_connections_are_ended() -> None:
    given = {"listeners": "PLAINTEXT://127.0.0.1:0", "connections.max.idle.ms": "0"}
    server = await new_server(BrokerConfig(given))
    idle, busy = await connect(server), await connect(server)
    busy.send(beat(1, "slow"), 1)
    await under_way(server)
    async with asyncio.timeout(60):
        while server.limits.count == 2:
            server.end_idle()
            await asyncio.sleep(0.001)
    assert await idle.is_closed()
    assert read_response(HEARTBEAT, 4, await busy.frame())[0] == 1
    await server.close(grace_ms=0)


async def test_without_a_maximum_idle_connections_stay() -> None:
    given = {"listeners": "PLAINTEXT://127.0.0.1:0", "connections.max.idle.ms": "-1"}
    server = await new_server(BrokerConfig(given))
    idle = await connect(server)
    async with asyncio.timeout(60):
        while not server.limits.count:
            await asyncio.sleep(0.001)
    server.end_idle()
    idle.send(beat(1), 1)
    assert read_response(HEARTBEAT, 4, await idle.frame())[0] == 1
    await server.close(grace_ms=0)


@pytest.mark.parametrize("requests", [3, 30], ids=["few unsent", "too many unsent to go on"])
async def test_a_client_that_does_not_read_its_response_is_disconnected(requests: int) -> None:
    given = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "connections.max.idle.ms": "0",
        "socket.send.buffer.bytes": "65536",
    }
    server = await new_server(BrokerConfig(given))
    client = await connect(server)
    header = (20_000).to_bytes(2, "big") + bytes(2) + bytes(4) + b"\xff\xff\0"
    body = bytes(1_000_000)
    frame = (len(header) + len(body)).to_bytes(4, "big") + header + body
    client.writer.write(requests * frame)
    # The responses are being sent, and are too large for the sockets' buffers.
    await client.reader.readexactly(4)
    async with asyncio.timeout(60):
        while server.limits.count:
            server.end_idle()
            await asyncio.sleep(0.01)
    await server.close(grace_ms=0)


async def test_close_waits_for_pending_requests(server: Server) -> None:
    client = await connect(server)
    client.send(beat(1, "slow"), 1)
    await under_way(server)
    await server.close(grace_ms=5_000)
    assert read_response(HEARTBEAT, 4, await client.frame())[0] == 1
    assert await client.is_closed()
    with pytest.raises(OSError):
        await connect(server)


async def test_close_ends_an_idle_connection_while_another_waits(server: Server) -> None:
    """A consumer would otherwise fetch again and again from a broker that is leaving."""
    busy, idle = await connect(server), await connect(server)
    idle.send(beat(1), 1)
    await idle.frame()
    busy.send(beat(1, "held"), 1)
    await under_way(server)
    closing = asyncio.create_task(server.close(grace_ms=60_000))
    assert await idle.is_closed()
    assert not closing.done()
    server.release.set()
    assert read_response(HEARTBEAT, 4, await busy.frame())[0] == 1
    assert await busy.is_closed()
    await closing


async def test_begun_frames_of_all_connections_are_limited() -> None:
    """Many clients begin a frame and send no more; one that sends its frames goes on."""
    limit = 1 << 20
    given = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "socket.request.max.bytes": str(limit),
        "queued.max.request.bytes": str(limit),
    }
    server = await new_server(BrokerConfig(given))
    ordinary = await connect(server)
    begun = [await connect(server) for _ in range(20)]
    for client in begun:
        client.writer.write((200_000).to_bytes(4, "big") + bytes(100_000))

    def holding() -> list[int]:
        return [each.request_bytes for each in server._connections.values() if each.request_bytes]

    async with asyncio.timeout(60):
        while server.limits.memory.ended + len(holding()) < len(begun):
            await asyncio.sleep(0.005)
    ordinary.send(produce_request(500), 1)
    assert await ordinary.frame()
    assert 0 < sum(holding()) <= limit + limit // PART
    assert len(holding()) < len(begun)
    await server.close(grace_ms=0)


async def test_unread_responses_of_all_connections_are_limited() -> None:
    server = await new_server(BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0"}))
    limit = 4 << 20
    server.limits.memory = ConnectionMemory(limit, limit)
    ordinary = await connect(server)
    deaf = [await connect(server) for _ in range(6)]
    body = bytes(1_000_000)
    frame = (10 + len(body)).to_bytes(4, "big") + (20_000).to_bytes(2, "big") + bytes(6)
    frame += b"\xff\xff" + body
    for client in deaf:
        transport: Any = client.writer.transport
        transport.pause_reading()
    async with asyncio.timeout(60):
        while not server.limits.memory.ended:
            for client in deaf:
                if not client.writer.transport.is_closing():
                    client.writer.write(frame)
            await asyncio.sleep(0.01)
    ordinary.send(beat(7), 1)
    assert await ordinary.frame()
    await server.close(grace_ms=0)
