"""A listener with WebSocket in front of a fake node."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest
import uvloop
from tests.network.test_listener import Server, beat, new_server, produce_request
from tests.network.test_tls_acceptor import Secured
from websockets.client import ClientProtocol
from websockets.frames import Close, Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.uri import parse_uri

from ottla.config import BrokerConfig, ConfigError
from ottla.network import websocket
from ottla.network.websocket import MAX_PINGS_A_SECOND
from ottla.protocol.frames import read_response, write_request

HOST = "127.0.0.1"
HEARTBEAT = 12
SETTINGS = {"listeners": f"PLAINTEXT://{HOST}:0", "ottla.websocket.listeners": "plaintext"}
pytestmark = pytest.mark.filterwarnings("ignore:Overriding the .event_loop_policy. fixture")


@pytest.fixture(params=[asyncio.DefaultEventLoopPolicy, uvloop.EventLoopPolicy])
def event_loop_policy(request: pytest.FixtureRequest) -> asyncio.AbstractEventLoopPolicy:
    policy: asyncio.AbstractEventLoopPolicy = request.param()
    return policy


class Browser:
    """A client, by the other half of the package."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.protocol: ClientProtocol
        self.received = bytearray()
        self.others: list[Frame] = []

    async def open(
        self, origin: str | None = None, subprotocols: tuple[str, ...] = ("kafka",)
    ) -> int:
        """The status of the answer."""
        self.protocol = ClientProtocol(
            parse_uri(f"ws://{HOST}/"),
            origin=origin,
            subprotocols=subprotocols or None,
        )
        self.protocol.send_request(self.protocol.connect())
        self.flush()
        while True:
            data = await self.reader.read(10_000)
            if not data:
                self.protocol.receive_eof()
            else:
                self.protocol.receive_data(data)
            for event in self.protocol.events_received():
                assert isinstance(event, Response)
                return int(event.status_code)
            if not data:
                return 0

    def flush(self) -> None:
        for data in self.protocol.data_to_send():
            if data:
                self.writer.write(data)

    def send(self, data: bytes) -> None:
        self.protocol.send_binary(data)
        self.flush()

    async def read(self) -> bool:
        """Whether anything came."""
        data = await self.reader.read(100_000)
        if not data:
            return False
        self.protocol.receive_data(data)
        self.flush()
        for event in self.protocol.events_received():
            assert isinstance(event, Frame)
            if event.opcode in (Opcode.BINARY, Opcode.CONT):
                self.received += event.data
            else:
                self.others.append(event)
        return True

    async def frame(self) -> memoryview:
        """Of Kafka's protocol."""
        while len(self.received) < 4 or len(self.received) - 4 < self.size:
            assert await self.read()
        found = bytes(self.received[4 : 4 + self.size])
        del self.received[: 4 + len(found)]
        return memoryview(found)

    @property
    def size(self) -> int:
        return int.from_bytes(self.received[:4], "big")

    async def beat(self, number: int) -> int:
        """The number in the response."""
        self.send(bytes(write_request(beat(number), number, "test")))
        response = read_response(HEARTBEAT, 4, await self.frame())[1]
        return int(response.throttle_time)

    async def end(self) -> Close | None:
        """What the server closes with; None: nothing."""
        try:
            while await self.read():
                pass
        except ConnectionResetError:
            pass
        return self.protocol.close_rcvd


class Bench:
    def __init__(self, server: Server, context: ssl.SSLContext | None) -> None:
        self.server, self.context = server, context
        self.clients: list[Browser] = []

    async def connect(self) -> Browser:
        name = "localhost" if self.context else None
        client = Browser(
            *await asyncio.open_connection(
                HOST, self.server.port, ssl=self.context, server_hostname=name
            )
        )
        self.clients.append(client)
        return client

    async def opened(self, **more: Any) -> Browser:
        client = await self.connect()
        assert await client.open(**more) == 101
        return client


@asynccontextmanager
async def serving(
    context: ssl.SSLContext | None = None, settings: dict[str, str] = SETTINGS, **more: str
) -> AsyncIterator[Bench]:
    named = {name.replace("_", "."): value for name, value in more.items()}
    server = await new_server(BrokerConfig(settings | named))
    bench = Bench(server, context)
    try:
        yield bench
    finally:
        for client in bench.clients:
            client.writer.close()
        await server.close(0)
        while server.limits.count:
            await asyncio.sleep(0.001)
        assert not server.connections
        assert len(server.newcomers) == 0


async def test_requests_in_frames() -> None:
    async with serving() as bench:
        client = await bench.opened()
        assert [await client.beat(number) for number in (1, 2, 3)] == [1, 2, 3]
        (connection,) = bench.server.connections
        assert connection.session.host == HOST
        assert len(bench.server.newcomers) == 0


async def test_frames_and_requests_have_no_borders_in_common() -> None:
    async with serving() as bench:
        client = await bench.opened()
        stream = b"".join(bytes(write_request(beat(number), number, "")) for number in range(100))
        for position in range(0, len(stream), 7):
            client.send(stream[position : position + 7])
        for number in range(100):
            response = read_response(HEARTBEAT, 4, await client.frame())[1]
            assert response.throttle_time == number
        client.protocol.send_binary(stream[:10], fin=False)
        client.protocol.send_continuation(stream[10:15], fin=False)
        client.protocol.send_continuation(stream[15:], fin=True)
        client.flush()
        for _ in range(100):
            await client.frame()


async def test_a_large_request_in_many_frames() -> None:
    async with serving() as bench:
        client = await bench.opened()
        request = bytes(write_request(produce_request(3_000_000), 1, ""))
        for position in range(0, len(request), 500_000):
            client.send(request[position : position + 500_000])
        response = read_response(0, 9, await client.frame())[1]
        assert response.throttle_time == 3_000_000


async def test_many_small_frames_take_turns() -> None:
    async with serving() as bench:
        client, other = await bench.opened(), await bench.opened()
        stream = bytes(write_request(beat(1), 1, "")) * 200
        for position in range(len(stream)):
            client.protocol.send_binary(stream[position : position + 1])
        client.flush()
        assert await other.beat(1) == 1
        for _ in range(200):
            await client.frame()


async def test_over_tls(tmp_path: Path) -> None:
    secured = Secured(tmp_path)
    settings = secured.settings | {
        "ottla.websocket.listeners": "SSL",
        "listener.name.ssl.ssl.client.auth": "required",
    }
    shown = secured.authority.issue("CN=alice")
    async with serving(secured.client_context(shown), settings) as bench:
        client = await bench.opened()
        assert await client.beat(5) == 5
        (connection,) = bench.server.connections
        assert str(connection.session.principal) == "User:CN=alice"


@pytest.mark.parametrize(
    ("origins", "origin", "status"),
    [
        ("", None, 101),
        ("", "https://example.org", 403),
        ("https://example.org", "https://example.org", 101),
        ("https://example.org", "https://example.org.evil.org", 403),
        ("https://example.org", "http://example.org", 403),
        ("https://example.org", "null", 403),
        ("https://example.org,http://localhost:8000", "http://localhost:8000", 101),
        ("https://example.org", None, 101),
        ("*", "https://anything.example", 101),
    ],
)
async def test_origins(
    origins: str, origin: str | None, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(ottla_websocket_origins=origins) as bench:
        client = await bench.connect()
        assert await client.open(origin) == status
        said = "its WebSocket handshake: invalid Origin header"
        assert (said in caplog.text) == (status == 403)


@pytest.mark.parametrize("subprotocols", [(), ("chat",), ("mqtt", "chat")])
async def test_other_subprotocols(subprotocols: tuple[str, ...]) -> None:
    async with serving() as bench:
        client = await bench.connect()
        assert await client.open(subprotocols=subprotocols) == 400


async def test_extensions_are_not_agreed_on() -> None:
    async with serving() as bench:
        client = await bench.connect()
        client.writer.write(
            b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Protocol: kafka\r\n"
            b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
        )
        answer = await client.reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 101")
        assert b"Extensions" not in answer


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (bytes(write_request(beat(1), 1, "test")) + b"\n\n", "its WebSocket handshake: "),
        (b"\x16\x03\x01\x02\x00\x01\x00", "it speaks TLS, and this listener does not"),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "its WebSocket handshake: "),
        (b"POST / HTTP/1.1\r\nHost: a\r\n\r\n", "its WebSocket handshake: "),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 1_000, "its WebSocket handshake: "),
        (b"GET /" + b"a" * 10_000, "its WebSocket handshake: "),
    ],
)
async def test_what_is_no_handshake(
    sent: bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as bench:
        client = await bench.connect()
        client.writer.write(sent)
        while await client.reader.read(10_000):
            pass
        assert said in caplog.text


async def test_a_handshake_that_stops(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(websocket, "HANDSHAKE_WITHIN_MS", 50)
    async with serving() as bench:
        client = await bench.connect()
        client.writer.write(b"GET / HTTP/1.1\r\nHost:")
        assert await client.reader.read() == b""
        assert "its WebSocket handshake took more than 50 ms" in caplog.text


async def test_handshakes_are_few() -> None:
    async with serving() as bench:
        bench.server.newcomers.maximum = 2
        first, second, third = [await bench.connect() for _ in range(3)]
        assert await first.reader.read() == b""
        assert await second.open() == 101
        assert await third.open() == 101


async def test_the_limit_of_connections() -> None:
    async with serving(max_connections="1") as bench:
        client = await bench.opened()
        other = await bench.connect()
        opening = asyncio.create_task(other.open())
        assert await client.beat(1) == 1
        assert not opening.done()
        client.writer.close()
        assert await opening == 101


async def test_who_connects_too_often_waits_before_it_is_closed() -> None:
    """For a window, as over TCP: closed at once, it would come again at once."""
    async with serving() as bench:
        bench.server.throttling.connections.set(HOST, 0.05)
        client, loop = await bench.connect(), asyncio.get_running_loop()
        connected = loop.time()
        client.writer.write(b"GET / HTTP/1.1\r\n\r\n")
        with suppress(ConnectionResetError):  # nobody has read what it sent
            assert await client.reader.read() == b""
        assert loop.time() > connected + 0.5
        assert not bench.server.connections
        bench.server.throttling.connections.set(HOST, None)
        assert await (await bench.opened()).beat(1) == 1


async def test_a_text_where_binary_belongs(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as bench:
        client = await bench.opened()
        client.protocol.send_text(b"hello")
        client.flush()
        end = await client.end()
        assert end == Close(1003, "a text, and Kafka's protocol is binary")
        assert "WebSocket: a text" in caplog.text


async def test_a_header_of_a_gigabyte(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as bench:
        client = await bench.opened()
        client.writer.write(b"\x82\xff" + (1 << 30).to_bytes(8, "big") + bytes(4))
        end = await client.end()
        assert end is not None
        assert end.code == 1009
        assert "exceeds limit of 524288 bytes" in caplog.text


@pytest.mark.parametrize(
    "sent",
    [
        b"\x82\x01a",  # not masked
        b"\xf2\x80" + bytes(4),  # reserved bits
        b"\x83\x80" + bytes(4),  # no such kind
        b"\x80\x80" + bytes(4),  # continues nothing
        b"\x89\xfe\x00\x80" + bytes(4 + 128),  # a ping of 128 bytes
        b"\x88\x81" + bytes(4) + b"a",  # a close of one byte
    ],
)
async def test_what_is_no_frame(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as bench:
        client = await bench.opened()
        client.writer.write(sent)
        end = await client.end()
        assert end is not None
        assert end.code == 1002
        assert caplog.text.count("WebSocket: ") == 1


async def test_pings_are_answered_until_they_are_too_many(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving() as bench:
        client = await bench.opened()
        client.protocol.send_ping(b"a")
        client.flush()
        while not client.others:
            await client.read()
        assert client.others[0].opcode is Opcode.PONG
        for _ in range(MAX_PINGS_A_SECOND * 3):
            client.protocol.send_ping(b"a")
        client.flush()
        end = await client.end()
        assert end == Close(1008, f"more than {MAX_PINGS_A_SECOND} pings a second")
        assert caplog.text.count("pings a second") == 1


async def test_a_client_that_says_goodbye() -> None:
    async with serving() as bench:
        client = await bench.opened()
        client.send(bytes(write_request(beat(1), 1, "")))
        await client.frame()
        client.protocol.send_close(1001)
        client.flush()
        end = await client.end()
        assert end is not None
        assert end.code == 1001
        assert client.protocol.state is State.CLOSING


async def test_requests_before_the_goodbye_are_carried_out() -> None:
    async with serving() as bench:
        client = await bench.opened()
        client.send(bytes(write_request(beat(1, "slow"), 1, "")))
        client.protocol.send_close(1000)
        client.flush()
        await bench.server.under_way.wait()


async def test_a_broker_that_stops_says_goodbye() -> None:
    async with serving() as bench:
        client = await bench.opened()
        await bench.server.close(1_000)
        assert await client.end() == Close(1000, "")


async def test_a_client_that_does_not_answer_a_goodbye(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "CLOSED_WITHIN_MS", 20)
    async with serving() as bench:
        client = await bench.opened()
        client.send(bytes(write_request(beat(1, "end"), 1, "")))
        while await client.reader.read(1000):
            pass


@pytest.mark.parametrize(
    ("subprotocol", "says_goodbye"), [("kafka", False), ("kafka", True), ("ottla.json", False)]
)
async def test_a_client_that_reads_nothing_keeps_no_connection(
    subprotocol: str, says_goodbye: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "CLOSED_WITHIN_MS", 20)
    async with serving(socket_send_buffer_bytes="4096") as bench:
        client = await bench.opened(subprotocols=(subprotocol,))
        cast("asyncio.ReadTransport", client.writer.transport).pause_reading()
        (connection,) = bench.server.connections
        # A page whose session waits to write gets nothing more: then what is unsent stays.
        unsent_bytes, before_bytes = 0, 0
        while unsent_bytes < 60_000 and not (unsent_bytes and unsent_bytes == before_bytes):
            for _ in range(1_000):
                if subprotocol == "kafka":
                    client.protocol.send_binary(bytes(write_request(beat(1), 1, "")))
                else:
                    client.protocol.send_text(b"no object")
            client.flush()
            await asyncio.sleep(0.01)
            before_bytes, unsent_bytes = unsent_bytes, connection.unsent_bytes
        if says_goodbye:
            client.protocol.send_close(1000)
            client.flush()
        else:
            await bench.server.close(0)
        async with asyncio.timeout(60):
            while bench.server.limits.count:
                await asyncio.sleep(0.01)


async def test_a_request_that_ends_the_connection() -> None:
    async with serving() as bench:
        client = await bench.opened()
        client.send(b"\x7f\xff\xff\xff" + bytes(100))
        assert await client.end() is None


def test_settings() -> None:
    with pytest.raises(ConfigError, match="No such listener in listeners"):
        BrokerConfig(SETTINGS | {"ottla.websocket.listeners": "WS"})
    for wrong in ("example.org", "https://example.org/page", "https://a b"):
        with pytest.raises(ConfigError, match=r"ottla\.websocket\.origins"):
            BrokerConfig(SETTINGS | {"ottla.websocket.origins": wrong})
    with pytest.raises(ConfigError, match="Brokers do not speak WebSocket"):
        BrokerConfig(SETTINGS | {"zookeeper.connect": f"{HOST}:2181"})
    with pytest.raises(ConfigError, match="Unknown setting"):
        BrokerConfig({"listener.name.plaintext.ottla.websocket.listeners": "PLAINTEXT"})
    own = BrokerConfig(SETTINGS | {"listener.name.plaintext.ottla.websocket.origins": "*"})
    assert own.security_of("PLAINTEXT").ottla_websocket_origins == ("*",)
