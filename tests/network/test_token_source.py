"""Where a broker gets its token."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.security.issuer import KeyServer, encoded, serving

from ottla.config.listener_tokens import TokenLogin
from ottla.network.token_source import TokenSource, get_token
from ottla.protocol.sasl_client import SaslError
from ottla.security.sasl.own_token import Refresh


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


def token(until_s: float) -> str:
    return f"e30.{encoded({'exp': until_s})}.s"


@pytest.fixture
def server() -> Iterator[KeyServer]:
    with serving(b"") as one:
        yield one


def test_a_token_of_the_issuer(server: KeyServer) -> None:
    server.new_token = lambda: json.dumps({"access_token": "a.b.c", "expires_in": 5}).encode()
    assert get_token(login(server.url)) == "a.b.c"
    assert get_token(login(server.url, scope="")) == "a.b.c"
    basic = f"Basic {base64.b64encode(b'broker:secret').decode()}"
    assert server.posted == [
        (basic, b"grant_type=client_credentials&scope=to+be+a+broker"),
        (basic, b"grant_type=client_credentials"),
    ]


def test_a_token_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("a.b.c")
    assert get_token(login(f"file://{path}")) == "a.b.c"
    path.write_bytes(b"\xff")
    with pytest.raises(SaslError, match="has no access_token"):
        get_token(login(f"file://{path}"))
    path.unlink()
    with pytest.raises(SaslError, match="No such file"):
        get_token(login(f"file://{path}"))


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
def test_no_token(server: KeyServer, status: int, answer: bytes, said: str) -> None:
    server.status, server.new_token = status, lambda: answer
    with pytest.raises(SaslError, match=said) as error:
        get_token(login(server.url))
    assert "secret" not in str(error.value)


class Clock:
    def __init__(self) -> None:
        self.now_ms = 0
        self.tokens: list[str] = []
        self.got = 0
        self.source = TokenSource(login("https://issuer"), now_ms=lambda: self.now_ms, get=self.get)

    def get(self, login: TokenLogin) -> str:
        self.got += 1
        if not self.tokens:
            raise SaslError("the issuer is down")
        return self.tokens.pop(0)


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

    def get(login: TokenLogin) -> str:
        held.set()
        assert free.wait(20)
        return token(10)

    clock.source = TokenSource(login("https://issuer"), now_ms=lambda: 0, get=get)
    first, second = [asyncio.create_task(clock.source.token()) for _ in range(2)]
    assert await asyncio.to_thread(held.wait, 20)
    first.cancel()
    free.set()
    assert await second == token(10)
