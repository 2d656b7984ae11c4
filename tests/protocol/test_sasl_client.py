"""The client's side of SASL."""

from __future__ import annotations

import pytest

from ottla.protocol.sasl_client import MAX_ITERATIONS, SaslError, Scram, plain_message

# The example of RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
WHOLE_NONCE = f"{NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={WHOLE_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
SERVER_FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def scram(username: str = "user") -> Scram:
    return Scram("SCRAM-SHA-256", username, "pencil", NONCE)


def test_the_example_of_the_rfc() -> None:
    exchange = scram()
    assert exchange.first() == f"n,,n=user,r={NONCE}".encode()
    proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert exchange.final(SERVER_FIRST.encode()) == f"c=biws,r={WHOLE_NONCE},p={proof}".encode()
    exchange.check(SERVER_FINAL.encode())


def test_a_comma_and_an_equals_sign_in_a_name() -> None:
    assert scram("a,b=c").first() == f"n,,n=a=2Cb=3Dc,r={NONCE}".encode()


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (SERVER_FIRST.replace(WHOLE_NONCE, NONCE), "nonce"),
        (SERVER_FIRST.replace(NONCE, "another"), "nonce"),
        ("", "nonce"),
        ("\udcff", "nonce"),
        (f"r={WHOLE_NONCE},i=4096", "no salt or iterations"),
        (f"r={WHOLE_NONCE},s=*,i=4096", "no salt or iterations"),
        (f"r={WHOLE_NONCE},s=AA==,i=many", "no salt or iterations"),
        (f"r={WHOLE_NONCE},s=AA==,i=0", "asks for 0 iterations"),
        (f"r={WHOLE_NONCE},s=AA==,i={MAX_ITERATIONS + 1}", "iterations"),
    ],
)
def test_a_wrong_first_message_of_the_server(first: str, why: str) -> None:
    with pytest.raises(SaslError, match=why):
        scram().final(first.encode(errors="surrogateescape"))


@pytest.mark.parametrize(
    ("final", "why"),
    [
        ("e=unknown-user", "The server refused: unknown-user"),
        ("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5=", "signature is wrong"),
        ("", "signature is wrong"),
    ],
)
def test_a_server_that_refuses_or_does_not_know_the_password(final: str, why: str) -> None:
    exchange = scram()
    exchange.final(SERVER_FIRST.encode())
    with pytest.raises(SaslError, match=why):
        exchange.check(final.encode())


def test_plain() -> None:
    assert plain_message("anna", "päss") == b"\0anna\0p\xc3\xa4ss"
