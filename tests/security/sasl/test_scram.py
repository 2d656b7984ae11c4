from base64 import b64decode
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.sasl_client import SaslError, Scram
from ottla.security.sasl.mechanism import Identity, RefusedError
from ottla.security.sasl.scram import (
    HASHES,
    ScramCredential,
    ScramExchange,
    credential_of,
    salted_password,
)

ITERATIONS = 4096
SALT = bytes.fromhex("5b6d99689d123586ec1c7f8b8d9f6c2e")


def credential(mechanism: str, password: str, iterations: int = ITERATIONS) -> ScramCredential:
    salted = salted_password(mechanism, password, SALT, iterations)
    return credential_of(mechanism, salted, SALT, iterations)


def exchange_of(
    mechanism: str, users: dict[str, ScramCredential], nonce: str = "OURS"
) -> ScramExchange:
    return ScramExchange(mechanism, users.get, nonce, b"secret")


def test_the_exchange_of_rfc_7677() -> None:
    """Its section 3."""
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    kept = credential_of(
        "SCRAM-SHA-256", salted_password("SCRAM-SHA-256", "pencil", salt, 4096), salt, 4096
    )
    exchange = exchange_of("SCRAM-SHA-256", {"user": kept}, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    first = exchange.answer(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    last = exchange.answer(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert last == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert exchange.identity == Identity("user")


@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize("name", ["alice", "a,b=c", "m\u00fcller \u6f22", "x" * 200])
def test_our_own_client(mechanism: str, name: str) -> None:
    exchange = exchange_of(mechanism, {name: credential(mechanism, "p\u00e4ss")})
    client = Scram(mechanism, name, "p\u00e4ss", "theirs")
    client.check(exchange.answer(client.final(exchange.answer(client.first()))))
    assert exchange.identity == Identity(name)


@pytest.mark.parametrize("iterations", [4096, 16384])
def test_iterations(iterations: int) -> None:
    exchange = exchange_of("SCRAM-SHA-256", {"a": credential("SCRAM-SHA-256", "p", iterations)})
    client = Scram("SCRAM-SHA-256", "a", "p", "theirs")
    client.check(exchange.answer(client.final(exchange.answer(client.first()))))


@pytest.mark.parametrize(
    "users",
    [
        {},
        {"alice": credential("SCRAM-SHA-256", "another")},
        # Fewer iterations than Kafka allows: as if there were no such user.
        {"alice": credential("SCRAM-SHA-256", "p", 1000)},
    ],
)
def test_a_wrong_user_and_a_wrong_password_look_the_same(users: dict[str, ScramCredential]) -> None:
    exchange = exchange_of("SCRAM-SHA-256", users)
    client = Scram("SCRAM-SHA-256", "alice", "p", "theirs")
    final = client.final(exchange.answer(client.first()))
    with pytest.raises(RefusedError, match="wrong user name or password"):
        exchange.answer(final)
    assert exchange.identity is None


def test_the_salt_of_an_unknown_user_does_not_change() -> None:
    answers = {exchange_of("SCRAM-SHA-512", {}).answer(b"n,,n=nobody,r=x") for _ in range(2)}
    assert len(answers) == 1
    assert exchange_of("SCRAM-SHA-512", {}).answer(b"n,,n=somebody,r=x") not in answers


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"y,,n=alice,r=x",
        b"p=tls-unique,,n=alice,r=x",
        b"n,,n=alice",
        b"n,,r=x,n=alice",
        b"n,,n=,r=x",
        b"n,,n=al=ice,r=x",
        b"n,a=bob,n=alice,r=x",
        b"n,,n=alice,r=x,tokenauth=true",
        b"\xff\xfe",
        b"n,,n=alice,r=" + b"x" * 10_000,
    ],
)
def test_first_messages_that_are_refused(first: bytes) -> None:
    with pytest.raises(RefusedError):
        exchange_of("SCRAM-SHA-256", {}).answer(first)


def test_acting_as_oneself() -> None:
    exchange = exchange_of("SCRAM-SHA-256", {})
    assert exchange.answer(b"n,a=alice,n=alice,r=x").startswith(b"r=xOURS,")


@pytest.mark.parametrize(
    "final",
    [
        b"",
        b"c=biws,r=xOURS",
        b"c=biws,r=xOURS,p=!",
        b"c=biws,r=xOURS,p=AAAA",
        b"c=biws,r=other,p=AAAA",
        b"c=eSws,r=xOURS,p=AAAA",
    ],
)
def test_last_messages_that_are_refused(final: bytes) -> None:
    exchange = exchange_of("SCRAM-SHA-256", {"alice": credential("SCRAM-SHA-256", "p")})
    exchange.answer(b"n,,n=alice,r=x")
    with pytest.raises(RefusedError):
        exchange.answer(final)


def test_a_server_that_does_not_know_the_password_is_noticed() -> None:
    right = credential("SCRAM-SHA-256", "p")
    exchange = exchange_of("SCRAM-SHA-256", {"a": right._replace(server_key=bytes(32))})
    client = Scram("SCRAM-SHA-256", "a", "p", "theirs")
    last = exchange.answer(client.final(exchange.answer(client.first())))
    with pytest.raises(SaslError):
        client.check(last)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_are_answered_or_refused(first: bytes, second: bytes) -> None:
    exchange = exchange_of("SCRAM-SHA-256", {})
    with suppress(RefusedError):
        exchange.answer(first)
        exchange.answer(second)
    assert exchange.identity is None
