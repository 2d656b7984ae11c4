"""A listener with TLS in front of a fake node."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop
from tests.network.test_listener import Client, Server, beat, new_server, produce_request
from tests.security.authority import Authority, Issued

from ottla.config import BrokerConfig, ConfigError
from ottla.network import tls_acceptor, tls_transport
from ottla.network.newcomers import Newcomers
from ottla.network.refusals import Refusals
from ottla.network.tls_acceptor import DAY_S, TlsAcceptor
from ottla.protocol.frames import read_response
from ottla.security.principal import ANONYMOUS, Principal
from ottla.security.tls import TlsOptions, key_store_ends_s, state_of_files

HEARTBEAT = 12
pytestmark = pytest.mark.filterwarnings("ignore:Overriding the .event_loop_policy. fixture")


@pytest.fixture(
    params=[
        (asyncio.DefaultEventLoopPolicy, False),
        (uvloop.EventLoopPolicy, False),
        (uvloop.EventLoopPolicy, True),
    ]
)
def event_loop_policy(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> asyncio.AbstractEventLoopPolicy:
    """The TLS of asyncio, of uvloop and of aiofastnet are three."""
    policy, is_direct = request.param
    if is_direct:
        assert tls_transport.is_direct(), "Python's ssl module has OpenSSL as a library here"
    else:
        monkeypatch.setattr(tls_transport, "is_direct", lambda: False)
    made: asyncio.AbstractEventLoopPolicy = policy()
    return made


HOST = "127.0.0.1"


class Secured:
    """Settings of a broker with one TLS listener, and the authority that both sides trust."""

    def __init__(self, folder: Path, **more: str) -> None:
        self.authority = Authority()
        self.store = self.authority.issue("CN=broker").store(folder / "broker.pem")
        self.trust = self.authority.trust(folder / "trust.pem")
        self.settings = {
            "listeners": f"SSL://{HOST}:0",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
        } | {name.replace("_", "."): value for name, value in more.items()}

    def client_context(self, shown: Issued | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.trust))
        if shown is not None:
            context.load_cert_chain(shown.store(self.store.with_name("client.pem")))
        return context

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Server]:
        server = await new_server(BrokerConfig(self.settings))
        try:
            yield server
        finally:
            await server.close(0)

    @asynccontextmanager
    async def client(
        self, server: Server, context: ssl.SSLContext | None = None
    ) -> AsyncIterator[Client]:
        client = Client(
            *await asyncio.open_connection(HOST, server.port, ssl=context or self.client_context())
        )
        try:
            yield client
        finally:
            client.writer.close()


async def answers(client: Client) -> bool:
    client.send(beat(7), 3)
    correlation_id, response = read_response(HEARTBEAT, 4, await client.frame())
    return (correlation_id, response.throttle_time) == (3, 7)


def principals(server: Server) -> list[Principal]:
    return [each.session.principal for each in server.connections]


async def until_gone(server: Server) -> None:
    async with asyncio.timeout(20):
        while server.limits.count:
            await asyncio.sleep(0.01)


async def test_requests_over_tls(tmp_path: Path) -> None:
    secured = Secured(tmp_path)
    async with secured.serving() as server:
        async with secured.client(server) as client:
            assert await answers(client)
            assert principals(server) == [ANONYMOUS]
            assert server.limits.count == 1
        await until_gone(server)


async def test_requests_behind_a_large_one_while_one_waits(tmp_path: Path) -> None:
    """The broker reads all at once, and stops behind the large one: no more comes from the socket
    when it continues.
    """
    secured = Secured(tmp_path)
    async with secured.serving() as server, secured.client(server) as client:
        client.send(beat(0, "held"), 0)
        await asyncio.wait_for(server.under_way.wait(), 20)
        for size_bytes in (300_000, 10, 20):
            client.send(produce_request(size_bytes), size_bytes)
        await asyncio.sleep(0.1)
        server.release.set()
        for correlation_id in (0, 300_000, 10, 20):
            frame = await asyncio.wait_for(client.frame(), 20)
            assert int.from_bytes(frame[:4], "big") == correlation_id


async def test_a_large_request_and_many_small_ones(tmp_path: Path) -> None:
    secured = Secured(tmp_path)
    async with secured.serving() as server, secured.client(server) as client:
        client.send(produce_request(20_000_000), 1)
        assert len(await client.frame()) > 4
        for number in range(500):
            client.send(beat(number), number)
        for number in range(500):
            correlation_id, _ = read_response(HEARTBEAT, 4, await client.frame())
            assert correlation_id == number


@pytest.mark.parametrize("client_auth", ["requested", "required"])
async def test_the_certificate_names_the_client(tmp_path: Path, client_auth: str) -> None:
    rules = {"ssl_principal_mapping_rules": "RULE:^CN=(.*?),OU=.*$/$1/U,DEFAULT"}
    secured = Secured(tmp_path, ssl_client_auth=client_auth, **rules)
    shown = secured.authority.issue("CN=alice,OU=Data")
    async with secured.serving() as server:
        context = secured.client_context(shown)
        async with secured.client(server, context) as client:
            assert await answers(client)
            assert principals(server) == [Principal("User", "ALICE")]


async def test_a_client_that_need_not_show_a_certificate(tmp_path: Path) -> None:
    secured = Secured(tmp_path, ssl_client_auth="requested")
    async with secured.serving() as server, secured.client(server) as client:
        assert await answers(client)
        assert principals(server) == [ANONYMOUS]


async def test_a_client_that_must_show_a_certificate(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secured = Secured(tmp_path, ssl_client_auth="required")
    async with secured.serving() as server:
        async with secured.client(server) as client:
            # With TLS 1.3 a client learns of it only after its own part of the handshake.
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                await answers(client)
        await until_gone(server)
    assert "it has shown no certificate, and ssl.client.auth is required here" in caplog.text


async def test_a_certificate_of_another_authority(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secured = Secured(tmp_path, ssl_client_auth="required")
    context = secured.client_context(Authority().issue("CN=mallory"))
    async with secured.serving() as server:
        async with secured.client(server, context) as client:
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                await answers(client)
        await until_gone(server)
    assert "its certificate is refused" in caplog.text


async def test_a_name_that_no_rule_maps(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rule = {"ssl_principal_mapping_rules": "RULE:^CN=(.*),OU=.*$/$1/"}
    secured = Secured(tmp_path, ssl_client_auth="required", **rule)
    context = secured.client_context(secured.authority.issue("CN=bob"))
    async with secured.serving() as server:
        async with secured.client(server, context) as client:
            assert await client.is_closed()
        await until_gone(server)
    assert "No rules apply to CN=bob" in caplog.text


async def test_plain_bytes_on_a_tls_port(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    secured = Secured(tmp_path)
    async with secured.serving() as server:
        client = Client(*await asyncio.open_connection(HOST, server.port))
        client.send(beat(1), 1)
        while not await client.is_closed():  # after the alert of TLS
            pass
        client.writer.close()
        await until_gone(server)
    (record,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert "its security.protocol must be SSL or SASL_SSL here" in record.getMessage()


async def test_tls_on_a_plain_port(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    secured = Secured(tmp_path)
    server = await new_server(BrokerConfig({"listeners": f"PLAINTEXT://{HOST}:0"}))
    with pytest.raises(OSError):
        async with secured.client(server):
            pass
    await until_gone(server)
    await server.close(0)
    (record,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert "it speaks TLS, and listener PLAINTEXT does not" in record.getMessage()


async def test_a_client_that_leaves_during_the_handshake(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secured = Secured(tmp_path)
    async with secured.serving() as server:
        _, writer = await asyncio.open_connection(HOST, server.port)
        writer.write(b"\x16\x03\x01\x02\x00\x01")
        await writer.drain()
        while not server.limits.count:
            await asyncio.sleep(0.01)
        writer.close()
        await until_gone(server)
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


async def test_handshakes_that_never_end_make_room(tmp_path: Path) -> None:
    secured = Secured(tmp_path)
    async with secured.serving() as server:
        silent = [
            await asyncio.open_connection(HOST, server.port)
            for _ in range(server.newcomers.maximum + 5)
        ]
        async with asyncio.timeout(20):
            while server.newcomers.expelled < 5:
                await asyncio.sleep(0.01)
        async with secured.client(server) as client:
            assert await answers(client)
        assert await silent[0][0].read() == b""
        for _, writer in silent:
            writer.close()
        await until_gone(server)


async def test_those_that_come_at_once_and_have_to_go_are_not_counted(tmp_path: Path) -> None:
    """They have to go before anything of their handshake has run."""
    secured = Secured(tmp_path)
    async with secured.serving() as server:
        server.newcomers.maximum = 1
        # All have connected before the loop accepts the first.
        silent = [socket.create_connection((HOST, server.port)) for _ in range(20)]
        async with asyncio.timeout(20):
            while server.newcomers.expelled < 19:
                await asyncio.sleep(0.01)
            while server.limits.count > 1:
                await asyncio.sleep(0.01)
        for each in silent:
            each.close()
        await until_gone(server)


async def test_a_client_cannot_negotiate_again(tmp_path: Path) -> None:
    """TLS 1.2: each time would cost the broker a handshake. OpenSSL's client asks for it by "R"."""
    secured = Secured(tmp_path)
    async with secured.serving() as server:
        command = ["openssl", "s_client", "-tls1_2", "-CAfile", str(secured.trust)]
        flooding = await asyncio.create_subprocess_exec(
            *command,
            "-connect",
            f"{HOST}:{server.port}",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert flooding.stdin is not None
        assert flooding.stdout is not None
        said = await asyncio.wait_for(flooding.stdout.readuntil(b"Verify return code"), 20)
        flooding.stdin.write(b"R\n")
        said += await asyncio.wait_for(flooding.stdout.read(), 20)
        await flooding.wait()
        assert b"RENEGOTIATING" in said
        assert b"no renegotiation" in said
        async with secured.client(server) as client:
            assert await answers(client)


async def test_a_certificate_that_expires_while_its_client_is_connected(tmp_path: Path) -> None:
    """As in Apache Kafka, it is looked at when a connection begins."""
    secured = Secured(tmp_path, ssl_client_auth="required")
    shown = secured.authority.issue("CN=alice", lasts_s=2)
    context = secured.client_context(shown)
    async with secured.serving() as server, secured.client(server, context) as client:
        assert await answers(client)
        await asyncio.sleep(3)
        assert await answers(client)
        async with secured.client(server, context) as another:
            assert await another.is_closed()


async def test_changed_files_are_read_and_open_connections_stay(tmp_path: Path) -> None:
    secured = Secured(tmp_path)
    async with secured.serving() as server, secured.client(server) as old:
        assert await answers(old)
        new_authority = Authority()
        new_authority.issue("CN=broker").store(secured.store)
        await server.look_at_files()
        with pytest.raises(ssl.SSLCertVerificationError):
            async with secured.client(server):
                pass
        new_authority.trust(secured.trust)
        async with secured.client(server) as new:
            assert await answers(new)
        assert await answers(old)


async def test_a_changed_file_that_is_wrong_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secured = Secured(tmp_path)
    async with secured.serving() as server:
        secured.store.write_text("half a file")
        await server.look_at_files()
        async with secured.client(server) as client:
            assert await answers(client)
    assert "listener SSL keeps its old certificates: ssl.keystore.location" in caplog.text


async def test_a_changed_file_of_another_name_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secured = Secured(tmp_path)
    async with secured.serving() as server:
        secured.authority.issue("CN=another broker").store(secured.store)
        await server.look_at_files()
        assert "keeps its old certificates: Keystore DistinguishedName does not" in caplog.text
    caplog.clear()
    secured.authority.issue("CN=broker").store(secured.store)
    secured.settings["ssl.allow.dn.changes"] = "true"
    async with secured.serving() as server:
        secured.authority.issue("CN=another broker").store(secured.store)
        await server.look_at_files()
        assert caplog.text == ""


async def test_the_limit_of_one_address(tmp_path: Path) -> None:
    secured = Secured(tmp_path, max_connections_per_ip="1")
    async with secured.serving() as server:
        async with secured.client(server) as client:
            with pytest.raises(OSError):
                async with secured.client(server):
                    pass
            assert await answers(client)
        await until_gone(server)


def new_acceptor(
    options: TlsOptions,
    now_ms: Callable[[], int] = lambda: 0,
    arrive: Callable[..., object] = lambda host, begin, end: begin(),
) -> TlsAcceptor:
    return TlsAcceptor(
        "SSL",
        options,
        Newcomers(),
        Refusals(logging.getLogger("ottla.tls"), "SSL", lambda: 0),
        arrive=arrive,
        release=lambda _: None,
        new_protocol=lambda _: asyncio.Protocol(),
        now_ms=now_ms,
    )


async def test_others_have_their_turn_while_many_connect(tmp_path: Path) -> None:
    options = TlsOptions(key_store=str(Authority().issue("CN=broker").store(tmp_path / "b.pem")))
    turns = 0
    arrived_at: list[int] = []

    def arrive(_host: str, _begin: object, end: Callable[[], object]) -> None:
        arrived_at.append(turns)
        end()

    acceptor = new_acceptor(options, arrive=arrive)
    with contextlib.ExitStack() as open_:
        bound = open_.enter_context(socket.create_server((HOST, 0), backlog=64))
        for _ in range(30):
            open_.enter_context(socket.create_connection(bound.getsockname()))
        acceptor.start([bound], 64)
        async with asyncio.timeout(20):
            while len(arrived_at) < 30:
                await asyncio.sleep(0)
                turns += 1
        acceptor.stop()
    assert len(set(arrived_at)) == 30, "one in each turn of the loop"


async def test_a_look_at_the_files_does_not_undo_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority()
    old = TlsOptions(key_store=str(authority.issue("CN=broker").store(tmp_path / "old.pem")))
    new = TlsOptions(key_store=str(authority.issue("CN=broker").store(tmp_path / "new.pem")))
    acceptor = new_acceptor(old)
    looks, may_go_on = threading.Event(), threading.Event()

    def slow(files: Sequence[str]) -> object:
        if files == old.files:
            looks.set()
            assert may_go_on.wait(20)
        return state_of_files(files)

    monkeypatch.setattr(tls_acceptor, "state_of_files", slow)
    look = asyncio.create_task(acceptor.look_at_files())
    assert await asyncio.to_thread(looks.wait, 20)
    change = asyncio.create_task(acceptor.change(new))
    await asyncio.wait([change], timeout=0.3)
    may_go_on.set()
    await look
    assert await change
    assert acceptor.options == new


@pytest.mark.parametrize("as_one_line", [False, True])
async def test_keys_and_certificates_in_the_settings(tmp_path: Path, as_one_line: bool) -> None:
    secured = Secured(tmp_path)
    issued = secured.authority.issue("CN=inline")
    del secured.settings["ssl.keystore.location"]
    texts = {
        "ssl.keystore.key": issued.key_pem("secret"),
        "ssl.keystore.certificate.chain": issued.certificate_pem,
        "ssl.truststore.certificates": secured.authority.certificate_pem,
    }
    if as_one_line:
        texts = {name: text.replace("\n", " ") for name, text in texts.items()}
    del secured.settings["ssl.truststore.location"]
    secured.settings |= texts | {"ssl.key.password": "secret", "ssl.client.auth": "required"}
    shown = secured.authority.issue("CN=client")
    context = secured.client_context(shown)
    async with secured.serving() as server, secured.client(server, context) as client:
        assert await answers(client)


async def test_certificates_that_cannot_be_used(tmp_path: Path) -> None:
    secured = Secured(tmp_path, ssl_keystore_location=str(tmp_path / "missing.pem"))
    with pytest.raises(
        ConfigError, match=r"listener SSL: ssl\.keystore\.location .*missing\.pem: No"
    ):
        await new_server(BrokerConfig(secured.settings))


async def test_only_tls_1_3_is_agreed_upon(tmp_path: Path) -> None:
    secured = Secured(tmp_path, ssl_enabled_protocols="TLSv1.3")
    old = secured.client_context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    async with secured.serving() as server:
        with pytest.raises(OSError):
            async with secured.client(server, old):
                pass
        async with secured.client(server) as client:
            assert await answers(client)


async def test_the_limit_of_one_listener(tmp_path: Path) -> None:
    secured = Secured(tmp_path)
    secured.settings["listener.name.ssl.max.connections"] = "1"
    async with secured.serving() as server:
        async with secured.client(server) as client:
            waiting = asyncio.create_task(
                asyncio.open_connection(HOST, server.port, ssl=secured.client_context())
            )
            async with asyncio.timeout(20):
                while not server.limits.waiting:
                    await asyncio.sleep(0.005)
            assert await answers(client)
            assert not waiting.done()
        other = Client(*await waiting)
        assert await answers(other)
        other.writer.close()
        await until_gone(server)


@pytest.mark.parametrize(
    ("days", "said"),
    [(29.5, "expires in 29 days, on 20"), (0.5, "expires in 0 days"), (-1, "expired on 20")],
)
async def test_a_certificate_that_expires_soon_is_named_once_a_day(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, days: float, said: str
) -> None:
    store = Authority().issue("CN=broker").store(tmp_path / "broker.pem")
    options = TlsOptions(key_store=str(store))
    ends_s = key_store_ends_s(options)
    assert ends_s is not None
    now_ms = int((ends_s - days * DAY_S) * 1000)

    def acceptor() -> TlsAcceptor:
        return new_acceptor(options, lambda: now_ms)

    first = acceptor()
    assert first.certificate_ends_s == ends_s
    first.start([], 1)
    assert said in caplog.text
    caplog.clear()
    first.warn_of_expiry()
    assert caplog.text == ""
    now_ms += DAY_S * 1000
    first.warn_of_expiry()
    assert "certificate of listener SSL" in caplog.text
    first.stop()
    caplog.clear()
    now_ms = int((ends_s - 31 * DAY_S) * 1000)
    early = acceptor()
    early.start([], 1)
    early.stop()
    assert caplog.text == ""
