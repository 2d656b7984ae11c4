"""Authentication, with transcripts: what the client sends, and what it gets."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from tests.network.test_listener import beat

from ottla.network.authentication import (
    MAX_VERSIONS_REQUESTS,
    MIN_REAUTHENTICATION_MS,
    Authentication,
    SaslRules,
)
from ottla.network.client_session import ClientSession
from ottla.network.frame_reader import FrameReader
from ottla.network.handlers import EndConnectionError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.frames import read_response, write_request
from ottla.protocol.messages import messages_of
from ottla.security.principal import ANONYMOUS, Principal
from ottla.security.sasl.mechanism import Exchange, Identity, RefusedError

HANDSHAKE, AUTHENTICATE, API_VERSIONS = 17, 36, 18
FAILED = "Authentication failed during {} due to invalid credentials with SASL mechanism WORD"


class Words:
    """A mechanism of two messages: "hello", then "i am NAME", perhaps " until T"."""

    def __init__(self) -> None:
        self.identity: Identity | None = None
        self._has_begun = False

    def answer(self, message: bytes) -> bytes:
        if not self._has_begun and message == b"hello":
            self._has_begun = True
            return b"who are you?"
        words = message.decode().split()
        if not self._has_begun or words[:2] != ["i", "am"]:
            raise RefusedError("what a message")
        self.identity = Identity(words[2], int(words[4]) if len(words) > 3 else None)
        return b"welcome"


class Bench:
    def __init__(self, **lifetimes_ms: int) -> None:
        self.now_ms = 0
        self.events: list[str] = []
        new: dict[str, Any] = {"WORD": Words, "OTHER": Words}
        rules = SaslRules(
            mechanisms=new,
            max_lifetime_ms=lifetimes_ms,
            max_receive_bytes=1000,
            failure_delay_ms=0,
            now_ms=lambda: 1_000_000 + self.now_ms,
            monotonic_ms=lambda: self.now_ms,
        )
        self.reader = FrameReader(min_bytes=0, max_bytes=1_000_000)
        self.session = ClientSession(1, "127.0.0.1", "SASL", "h", 1)
        self.authentication = Authentication(
            rules,
            self._rest,
            self.reader,
            authenticated=lambda: self.events.append("authenticated"),
            refused=lambda reason: self.events.append(reason),
        )

    async def _rest(self, frame: Any, session: ClientSession) -> list[Any]:
        return [b"rest"]

    async def send(self, request: Any) -> Any:
        """The response; b"rest" if the request went through."""
        frame = bytes(write_request(request, 7, "test"))[4:]
        parts = b"".join(await self.authentication.answer(frame, self.session))
        if parts == b"rest":
            return parts
        return read_response(request.__api_key__, request.__version__, memoryview(parts)[4:])[1]

    async def handshake(self, mechanism: str = "WORD", version: int = 1) -> Any:
        build = messages_of(HANDSHAKE, version, "request")
        return await self.send(build.SaslHandshakeRequest(mechanism=mechanism))

    async def say(self, message: bytes, version: int = 2) -> Any:
        build = messages_of(AUTHENTICATE, version, "request")
        return await self.send(build.SaslAuthenticateRequest(auth_bytes=message))

    async def log_in(self, words: bytes = b"i am alice") -> Any:
        await self.handshake()
        await self.say(b"hello")
        return await self.say(words)

    async def ends(self, request: Any) -> list[Any]:
        """What the client still gets of a connection that this request ends."""
        with pytest.raises(EndConnectionError) as end:
            await request
        return [] if end.value.last is None else end.value.last


def versions() -> Any:
    return messages_of(API_VERSIONS, 0, "request").ApiVersionsRequest()


def response(request: tuple[int, int], parts: list[Any]) -> Any:
    return read_response(*request, memoryview(b"".join(parts))[4:])[1]


async def test_a_client_logs_in() -> None:
    bench = Bench()
    assert await bench.send(versions()) == b"rest"
    assert bench.reader.max_bytes == 1000
    shaken = await bench.handshake()
    assert (shaken.error_code, shaken.mechanisms) == (ErrorCode.none, ("WORD", "OTHER"))
    assert (await bench.say(b"hello")).auth_bytes == b"who are you?"
    assert bench.session.principal == ANONYMOUS
    done = await bench.say(b"i am alice")
    assert (done.error_code, bytes(done.auth_bytes)) == (ErrorCode.none, b"welcome")
    assert done.session_lifetime == 0
    assert bench.session.principal == Principal("User", "alice")
    assert bench.events == ["authenticated"]
    assert bench.reader.max_bytes == 1_000_000
    assert await bench.send(beat(1)) == b"rest"


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_every_version_of_the_messages(version: int) -> None:
    bench = Bench()
    await bench.handshake()
    await bench.say(b"hello", version)
    await bench.say(b"i am alice", version)
    assert bench.session.principal.name == "alice"


async def test_bare_tokens_after_the_oldest_handshake() -> None:
    bench = Bench()
    await bench.handshake(version=0)
    for token, answer in ((b"hello", b"who are you?"), (b"i am bob", b"welcome")):
        parts = await bench.authentication.answer(token, bench.session)
        assert b"".join(parts) == len(answer).to_bytes(4, "big") + answer
    assert bench.session.principal.name == "bob"
    assert await bench.send(beat(1)) == b"rest"


async def test_a_bare_token_that_is_wrong() -> None:
    bench = Bench()
    await bench.handshake(version=0)
    assert await bench.ends(bench.authentication.answer(b"goodbye", bench.session)) == []
    assert bench.events == ["what a message"]


async def test_an_unknown_mechanism() -> None:
    bench = Bench()
    last = await bench.ends(bench.handshake("GSSAPI"))
    told = response((HANDSHAKE, 1), last)
    assert told.error_code is ErrorCode.unsupported_sasl_mechanism
    assert told.mechanisms == ("WORD", "OTHER")
    assert bench.events == ["it wants SASL mechanism 'GSSAPI'; offered are WORD, OTHER"]


async def test_one_wording_for_every_refusal() -> None:
    for words in (b"goodbye", b"i was alice"):
        bench = Bench()
        await bench.handshake()
        told = response((AUTHENTICATE, 2), await bench.ends(bench.say(words)))
        assert told.error_code is ErrorCode.sasl_authentication_failed
        assert told.error_message == FAILED.format("authentication")
        assert bench.events == ["what a message"]
        assert bench.session.principal == ANONYMOUS


async def test_other_requests_before_and_during_the_handshake() -> None:
    bench = Bench()
    assert await bench.ends(bench.send(beat(1))) == []
    assert bench.events[0].startswith("unexpected heartbeat request during SASL handshake")
    bench = Bench()
    await bench.handshake()
    for request in (beat(1), versions()):
        assert await bench.ends(bench.send(request)) == []
    bench = Bench()
    assert await bench.ends(bench.say(b"hello")) == []
    assert await bench.ends(bench.authentication.answer(b"\x60\x82\x01", bench.session)) == []
    assert await bench.ends(bench.authentication.answer(b"", bench.session)) == []


async def test_nothing_of_another_request_is_decoded(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    bench = Bench()
    hostile = b"\0\0" + b"\xff" * 50
    assert await bench.ends(bench.authentication.answer(hostile, bench.session)) == []
    assert bench.events[0].startswith("unexpected produce request")


async def test_messages_that_end_too_early_or_have_another_version() -> None:
    for frame in (
        b"\0\x11\0\1",
        b"\0\x11\0\1\0\0\0\7\xff\xff\0\x50",
        b"\0\x11\0\x09\0\0\0\7\xff\xff",
    ):
        bench = Bench()
        assert await bench.ends(bench.authentication.answer(frame, bench.session)) == []
        assert bench.events[0].startswith("SASL handshake: ")


async def test_the_versions_may_be_asked_a_few_times() -> None:
    bench = Bench()
    for _ in range(MAX_VERSIONS_REQUESTS):
        assert await bench.send(versions()) == b"rest"
    assert await bench.ends(bench.send(versions())) == []


async def test_a_session_ends() -> None:
    bench = Bench(WORD=5000)
    assert (await bench.log_in()).session_lifetime == 5000
    bench.now_ms = 4999
    assert await bench.send(beat(1)) == b"rest"
    bench.now_ms = 5000
    with pytest.raises(EndConnectionError, match="the session of User:alice is over"):
        await bench.send(beat(1))


@pytest.mark.parametrize(("most_ms", "lifetime_ms"), [(0, 3000), (2000, 2000), (9000, 3000)])
async def test_credentials_end(most_ms: int, lifetime_ms: int) -> None:
    bench = Bench(WORD=most_ms)
    done = await bench.log_in(b"i am alice until 1003000")
    assert done.session_lifetime == lifetime_ms


async def test_a_client_authenticates_again() -> None:
    bench = Bench(WORD=5000)
    await bench.log_in()
    bench.now_ms = 6000  # even later than it should have
    assert (await bench.log_in()).session_lifetime == 5000
    assert await bench.send(beat(1)) == b"rest"
    assert bench.events == ["authenticated"]
    bench.now_ms += MIN_REAUTHENTICATION_MS - 1
    # Too soon: its handler refuses it.
    assert await bench.handshake() == b"rest"


async def test_a_session_that_does_not_end_is_not_begun_again() -> None:
    """Its handler refuses the handshake, as KafkaChannel.maybeBeginServerReauthentication does."""
    bench = Bench()
    await bench.log_in()
    assert await bench.handshake() == b"rest"
    assert await bench.send(beat(1)) == b"rest"


async def test_it_stays_the_same_client() -> None:
    bench = Bench(WORD=5000)
    await bench.log_in()
    await bench.handshake()
    await bench.say(b"hello")
    told = response((AUTHENTICATE, 2), await bench.ends(bench.say(b"i am bob")))
    assert told.error_code is ErrorCode.sasl_authentication_failed
    assert told.error_message == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )


async def test_it_keeps_its_mechanism() -> None:
    bench = Bench(WORD=5000)
    await bench.log_in()
    assert (await bench.handshake("OTHER")).error_code is ErrorCode.none
    told = response((AUTHENTICATE, 2), await bench.ends(bench.say(b"hello")))
    assert told.error_code is ErrorCode.sasl_authentication_failed
    assert "is not supported for re-authentication of mechanism 'WORD'" in told.error_message


async def test_what_is_wrong_the_second_time() -> None:
    bench = Bench(WORD=5000)
    await bench.log_in()
    await bench.handshake()
    told = response((AUTHENTICATE, 2), await bench.ends(bench.say(b"goodbye")))
    assert told.error_message == FAILED.format("re-authentication")
    bench = Bench(WORD=5000)
    await bench.log_in()
    await bench.handshake()
    assert await bench.ends(bench.send(beat(1))) == []


def test_the_words_are_a_mechanism() -> None:
    exchange: Exchange = Words()
    assert exchange.identity is None
