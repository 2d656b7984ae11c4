from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

import pytest
from tests.security.issuer import Issuer

from ottla.network import bounded_read
from ottla.network.bounded_read import MAX_THREADS
from ottla.network.token_keys import MIN_AGAIN_MS, TokenKeys
from ottla.security.sasl.signed_token import KeysError


class Bench:
    """Keys that are read from `answer`, which may fail or hang."""

    def __init__(self, **times: int) -> None:
        self.issuer = Issuer()
        self.now_ms = 0
        self.reads = 0
        self.failure = ""
        self.hangs: threading.Event | None = None
        self.given_up = 0
        self.keys = TokenKeys(
            "http://issuer/keys",
            lambda: self,
            refresh_ms=times.get("refresh_ms", 3_600_000),
            retry_ms=times.get("retry_ms", 1),
            max_retry_ms=times.get("max_retry_ms", 4),
            monotonic_ms=lambda: self.now_ms,
        )

    def read(self) -> bytes:
        self.reads += 1
        if self.hangs is not None:
            self.hangs.wait()
        if self.failure:
            raise KeysError(self.failure)
        return self.issuer.key_set()

    def give_up(self) -> None:
        self.given_up += 1


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.001)


async def test_keys_are_read_at_once_and_in_intervals() -> None:
    bench = Bench(refresh_ms=1)
    assert bench.keys.keys is None
    bench.keys.follow()
    await until(lambda: bench.keys.keys is not None)
    bench.issuer.new_key()
    await until(lambda: bench.keys.keys is not None and len(bench.keys.keys) == 2)
    bench.keys.close()
    assert bench.given_up >= 2


async def test_a_failure_is_tried_again_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    bench = Bench()
    bench.failure = "Connection refused"
    bench.keys.follow()
    await until(lambda: bench.reads > 5)
    assert bench.keys.keys is None
    bench.failure = ""
    await until(lambda: bench.keys.keys is not None)
    bench.keys.close()
    said = [each.getMessage() for each in caplog.records]
    assert said == [
        "cannot read the keys of tokens from http://issuer/keys: Connection refused; trying "
        "again; until then all tokens are refused",
        "http://issuer/keys has 1 keys for tokens",
    ]


async def test_keys_stay_while_others_cannot_be_read() -> None:
    bench = Bench(refresh_ms=1)
    bench.keys.follow()
    await until(lambda: bench.keys.keys is not None)
    bench.failure = "it answers with HTTP status 503"
    await until(lambda: bool(bench.keys.failure))
    assert bench.keys.keys is not None
    bench.keys.close()


async def test_a_token_with_an_unknown_key_has_them_read() -> None:
    bench = Bench()
    bench.keys.follow()
    await until(lambda: bench.keys.keys is not None)
    bench.issuer.new_key()
    first, second = bench.keys.again(), bench.keys.again()
    assert first is not None
    assert second is not None
    await asyncio.gather(first, second)
    assert len(bench.keys.keys or ()) == 2
    assert bench.reads == 2
    bench.now_ms += MIN_AGAIN_MS - 1
    assert bench.keys.again() is None
    bench.now_ms += 1
    third = bench.keys.again()
    assert third is not None
    await third
    assert bench.reads == 3
    bench.keys.close()


async def test_who_waits_gives_up_alone() -> None:
    bench = Bench()
    bench.keys.follow()
    first, second = bench.keys.again(), bench.keys.again()
    assert first is not None
    assert second is not None
    waiting = asyncio.ensure_future(first)
    waiting.cancel()
    await second
    assert bench.keys.keys is not None
    bench.keys.close()


async def test_the_end_of_a_read_that_fails() -> None:
    bench = Bench(retry_ms=1_000_000, max_retry_ms=1_000_000)
    bench.failure = "no"
    bench.keys.follow()
    wait = bench.keys.again()
    assert wait is not None
    await wait
    assert bench.keys.keys is None
    bench.keys.close()


async def test_threads_that_hang_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_read, "READ_WITHIN_MS", 1)
    bench = Bench()
    bench.hangs = threading.Event()
    for _ in range(MAX_THREADS):
        with pytest.raises(KeysError, match="more than 1 ms"):
            await bench.keys.read()
    with pytest.raises(KeysError, match="earlier attempts still hang"):
        await bench.keys.read()
    assert bench.reads == MAX_THREADS
    bench.hangs.set()
    monkeypatch.undo()
    await until(lambda: len(bench.keys.keys or ()) == 1 or not threads())
    await bench.keys.read()
    assert bench.keys.keys is not None


def threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "token-keys"]


async def test_what_is_no_key_set() -> None:
    bench = Bench()
    bench.issuer.keys.clear()
    with pytest.raises(KeysError, match="no public key"):
        await bench.keys.read()
