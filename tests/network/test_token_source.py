"""Where a broker gets its token."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.security.issuer import KeyServer, encoded, serving

from ottla.config.listener_tokens import TokenLogin
from ottla.network import bounded_read
from ottla.network.bounded_read import Reader
from ottla.network.token_source import TokenSource
from ottla.protocol.sasl_client import SaslError
from ottla.security.sasl.own_token import Refresh
from ottla.security.sasl.signed_token import KeysError


def login(url: str, scope: str = "to be a broker") -> TokenLogin:
    return TokenLogin(
        url=url,
        client_id="broker",
        client_secret="secret",
        scope=scope,
        connect_ms=None,
        read_ms=None,
        retry_ms=100,
        max_retry_ms=300,
        refresh=Refresh(0.5, 0.0, 0, 0),
        authorities=None,
    )


async def get_token(login: TokenLogin) -> str:
    return await TokenSource(login).get()


def token(until_s: float) -> str:
    return f"e30.{encoded({'exp': until_s})}.s"


@pytest.fixture
def server() -> Iterator[KeyServer]:
    with serving(b"") as one:
        yield one


async def test_a_token_of_the_issuer(server: KeyServer) -> None:
    server.new_token = lambda: json.dumps({"access_token": "a.b.c", "expires_in": 5}).encode()
    assert await get_token(login(server.url)) == "a.b.c"
    assert await get_token(login(server.url, scope="")) == "a.b.c"
    basic = f"Basic {base64.b64encode(b'broker:secret').decode()}"
    assert server.posted == [
        (basic, b"grant_type=client_credentials&scope=to+be+a+broker"),
        (basic, b"grant_type=client_credentials"),
    ]


async def test_a_token_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("a.b.c")
    assert await get_token(login(f"file://{path}")) == "a.b.c"
    path.write_bytes(b"\xff")
    with pytest.raises(SaslError, match="it is no token"):
        await get_token(login(f"file://{path}"))
    path.unlink()
    with pytest.raises(SaslError, match="No such file"):
        await get_token(login(f"file://{path}"))


@pytest.mark.parametrize(
    ("status", "answer", "said"),
    [
        (401, b'{"error":"invalid_client","error_description":"who?"}', r"401 .invalid_client - w"),
        (500, b"<html>", "HTTP status 500$"),
        (200, b"<html>", "has no access_token"),
        (200, b"[]", "has no access_token"),
        (200, b'{"access_token":7}', "has no access_token"),
    ],
)
async def test_no_token(server: KeyServer, status: int, answer: bytes, said: str) -> None:
    server.status, server.new_token = status, lambda: answer
    with pytest.raises(SaslError, match=said) as error:
        await get_token(login(server.url))
    assert "secret" not in str(error.value)


class Clock:
    def __init__(self) -> None:
        self.now_ms = 0
        self.tokens: list[str] = []
        self.got = 0
        self.source = self.new_source(self.read)

    def new_source(self, read: Callable[[], bytes]) -> TokenSource:
        reader: Reader = SimpleNamespace(read=read, give_up=lambda: None)
        return TokenSource(
            login("https://issuer"), now_ms=lambda: self.now_ms, new_reader=lambda _: reader
        )

    def read(self) -> bytes:
        self.got += 1
        if not self.tokens:
            raise KeysError("the issuer is down")
        return answer_with(self.tokens.pop(0))


def answer_with(text: str) -> bytes:
    return json.dumps({"access_token": text}).encode()


async def test_a_token_is_got_again_before_it_expires() -> None:
    clock = Clock()
    clock.tokens = [token(10), token(20), token(30)]
    assert await asyncio.gather(*[clock.source.token() for _ in range(3)]) == [token(10)] * 3
    assert clock.got == 1
    clock.now_ms = 4_999
    assert await clock.source.token() == token(10)
    clock.now_ms = 5_000
    assert await clock.source.token() == token(20)
    assert clock.got == 2


async def test_an_issuer_that_is_down(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    clock = Clock()
    for _ in range(3):
        with pytest.raises(SaslError, match="the issuer is down"):
            await clock.source.token()
    assert clock.got == 1, "it is not asked without a pause"
    clock.now_ms = 100
    clock.tokens = [token(10)]
    assert await clock.source.token() == token(10)
    clock.now_ms = 6_000
    assert await clock.source.token() == token(10), "the old one serves while it lasts"
    clock.now_ms = 10_000
    with pytest.raises(SaslError, match="the issuer is down"):
        await clock.source.token()
    assert caplog.text.count("the issuer is down; trying again") == 2


async def test_who_gives_up_does_not_end_it_for_others() -> None:
    clock = Clock()
    held, free = threading.Event(), threading.Event()

    def read() -> bytes:
        held.set()
        assert free.wait(20)
        return answer_with(token(10))

    source = clock.new_source(read)
    first, second = [asyncio.create_task(source.token()) for _ in range(2)]
    assert await asyncio.to_thread(held.wait, 20)
    first.cancel()
    free.set()
    assert await second == token(10)


async def test_an_issuer_that_answers_byte_by_byte_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is never silent for long, so only the time of the whole request ends it."""
    monkeypatch.setattr(bounded_read, "READ_WITHIN_MS", 300)
    gone = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        with suppress(ConnectionError):
            while not reader.at_eof():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.01)
        writer.close()
        gone.set()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(SaslError, match="it took more than 300 ms"):
            await TokenSource(login(f"http://127.0.0.1:{port}/")).token()
        await asyncio.wait_for(gone.wait(), 20)
