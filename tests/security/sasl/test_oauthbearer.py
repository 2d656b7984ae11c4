from __future__ import annotations

import pytest

from ottla.security.sasl.mechanism import Identity, RefusedError
from ottla.security.sasl.oauthbearer import (
    INSUFFICIENT_SCOPE,
    MAX_TOKEN_CHARACTERS,
    OauthbearerExchange,
    TokenError,
)

ALICE = Identity("alice", 5000)


def identity_of(token: str) -> Identity:
    if token == "alices":
        return ALICE
    if token == "narrow":
        raise TokenError("it lacks scope w", INSUFFICIENT_SCOPE, 'r "w"')
    raise TokenError("it is not hers")


def exchange() -> OauthbearerExchange:
    return OauthbearerExchange(identity_of)


@pytest.mark.parametrize(
    "message",
    [
        b"n,,\x01auth=Bearer alices\x01\x01",
        b"n,,\x01auth=bEaReR   alices\x01\x01",
        b"n,a=alice,\x01auth=Bearer alices\x01\x01",
        b"n,,\x01traceId=123 4\x01auth=Bearer alices\x01key=value\x01\x01",
    ],
)
def test_a_token_that_is_accepted(message: bytes) -> None:
    one = exchange()
    assert one.identity is None
    assert one.answer(message) == b""
    assert one.identity == ALICE


def test_a_token_that_is_not() -> None:
    one = exchange()
    assert one.answer(b"n,,\x01auth=Bearer bobs\x01\x01") == b'{"status":"invalid_token"}'
    for message in (b"\x01", b"n,,\x01auth=Bearer alices\x01\x01"):
        with pytest.raises(RefusedError, match="token refused: it is not hers") as error:
            one.answer(message)
        assert error.value.told == '{"status":"invalid_token"}'
    assert one.identity is None


def test_a_scope_that_is_missing() -> None:
    told = exchange().answer(b"n,,\x01auth=Bearer narrow\x01\x01")
    assert told == b'{"status":"insufficient_scope","scope":"r \\"w\\""}'


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer alices\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Basic alices\x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01auth=Bearer alices\x01auth=Bearer alices\x01\x01",
        b"n,,\x01auth=Bearer al\xffces\x01\x01",
        b"n,,\x01auth=Bearer alices\x01\x01more",
        b"y,,\x01auth=Bearer alices\x01\x01",
        b"n,a=a=b,\x01auth=Bearer alices\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer alices\x01\x01",
        b"n,,\x01auth=Bearer alices\x01key=\x01\x01",
    ],
)
def test_messages_that_are_wrong(message: bytes) -> None:
    one = exchange()
    with pytest.raises(RefusedError) as error:
        one.answer(message)
    assert error.value.told is None
    assert one.identity is None


def test_nobody_acts_as_another() -> None:
    one = exchange()
    with pytest.raises(RefusedError, match="user 'alice' wants to act as 'b,b=b'"):
        one.answer(b"n,a=b=2Cb=3Db,\x01auth=Bearer alices\x01\x01")
    assert one.identity is None


@pytest.mark.parametrize("size", [MAX_TOKEN_CHARACTERS + 1, 1 << 20])
def test_a_large_token_is_not_looked_at(size: int) -> None:
    def looked_at(token: str) -> Identity:
        raise AssertionError(len(token))

    one = OauthbearerExchange(looked_at)
    told = one.answer(b"n,,\x01auth=Bearer %b\x01\x01" % (b"a" * size))
    assert told == b'{"status":"invalid_token"}'
    with pytest.raises(RefusedError, match=f"more than {MAX_TOKEN_CHARACTERS}"):
        one.answer(b"\x01")
