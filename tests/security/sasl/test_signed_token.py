from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Awaitable
from typing import Any

import pytest
from joserfc import jwk
from tests.security.issuer import AUDIENCE, ISSUER, Issuer, claims_of, encoded

from ottla.security.sasl.mechanism import Identity, NotYetError
from ottla.security.sasl.oauthbearer import TokenError
from ottla.security.sasl.signed_token import (
    MAX_HEADER_CHARACTERS,
    MAX_KEYS,
    KeysError,
    SignedTokens,
    SigningKeys,
    read_keys,
)
from ottla.security.sasl.token_claims import ClaimRules

pytestmark = pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
NOW_S = 1_700_000_000
RULES = ClaimRules((AUDIENCE,), ISSUER)


class Source:
    def __init__(self, keys: SigningKeys | None, fetched: Awaitable[None] | None = None) -> None:
        self.keys = keys
        self.fetched = fetched
        self.asked = 0

    def again(self) -> Awaitable[None] | None:
        self.asked += 1
        return self.fetched


def tokens(source: Source) -> SignedTokens:
    return SignedTokens(source, RULES, lambda: NOW_S * 1000)


def checked(issuer: Issuer, token: str) -> Identity:
    return tokens(Source(read_keys(issuer.key_set()))).identity_of(token)


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(scope="module")
def rsa() -> Issuer:
    return Issuer("RSA", 2048)


def alice(**more: Any) -> dict[str, Any]:
    return claims_of("alice", NOW_S, **more)


ALICE = Identity("alice", (NOW_S + 600) * 1000)


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"])
def test_algorithms_of_rsa(rsa: Issuer, algorithm: str) -> None:
    assert checked(rsa, rsa.sign(alice(), algorithm)) == ALICE


@pytest.mark.parametrize(
    ("kind", "curve", "algorithm"),
    [
        ("EC", "P-256", "ES256"),
        ("EC", "P-384", "ES384"),
        ("EC", "P-521", "ES512"),
        ("OKP", "Ed25519", "EdDSA"),
        ("OKP", "Ed448", "EdDSA"),
    ],
)
def test_algorithms_of_curves(kind: str, curve: str, algorithm: str) -> None:
    one = Issuer(kind, curve)
    assert checked(one, one.sign(alice(), algorithm)) == ALICE


def test_a_token_that_does_not_name_its_key(issuer: Issuer) -> None:
    two = Issuer()
    two.keys.insert(0, issuer.keys[0])
    assert checked(two, two.sign(alice(), with_id=False)) == ALICE


def test_what_else_an_issuer_puts_into_the_header(issuer: Issuer) -> None:
    assert checked(issuer, issuer.sign(alice(), typ="at+jwt")) == ALICE
    header = {"alg": "ES256", "kid": "1", "nonce": "x", "org": [1]}
    assert checked(issuer, resigned(issuer, header)) == ALICE


def resigned(issuer: Issuer, header: dict[str, Any]) -> str:
    """Signed right, with a header that joserfc would not write."""
    from joserfc.jws import JWSRegistry

    signing = f"{encoded(header)}.{encoded(alice())}"
    signature = JWSRegistry.algorithms["ES256"].sign(signing.encode(), issuer.keys[0])
    return f"{signing}.{encoded(signature)}"


def test_signed_by_nobody_or_by_the_public_key(rsa: Issuer) -> None:
    claims = encoded(alice())
    for alg in ("none", "None", "", None, 7, ["RS256"]):
        with pytest.raises(TokenError, match=r"not one with a public key|not a signed token"):
            checked(rsa, f"{encoded({'alg': alg})}.{claims}.")
    public = rsa.keys[0].as_pem(private=False)
    signing = f"{encoded({'alg': 'HS256', 'kid': '1'})}.{claims}"
    forged = encoded(hmac.digest(public, signing.encode(), hashlib.sha256))
    with pytest.raises(TokenError, match="its algorithm is 'HS256'"):
        checked(rsa, f"{signing}.{forged}")


def test_another_key_or_algorithm(issuer: Issuer, rsa: Issuer) -> None:
    other = Issuer()
    with pytest.raises(TokenError, match="its signature is wrong"):
        checked(issuer, other.sign(alice()))
    with pytest.raises(TokenError, match="no key '1' for RS256"):
        checked(issuer, rsa.sign(alice(), "RS256"))
    header = encoded({"alg": "ES384", "kid": "1"})
    with pytest.raises(TokenError, match="no key '1' for ES384"):
        checked(issuer, f"{header}.{encoded(alice())}.{encoded(b'x' * 96)}")


def test_changed_claims(issuer: Issuer) -> None:
    header, _, signature = issuer.sign(alice()).split(".")
    with pytest.raises(TokenError, match="its signature is wrong"):
        checked(issuer, f"{header}.{encoded(alice(sub='admin'))}.{signature}")
    with pytest.raises(TokenError, match="its signature is wrong"):
        checked(issuer, issuer.sign(alice())[:-4])


def test_claims_are_checked(issuer: Issuer) -> None:
    with pytest.raises(TokenError, match="its audience"):
        checked(issuer, issuer.sign(alice(aud="elsewhere")))


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a",
        "a.b.c",
        "..",
        "....",
        "e30.e30.e30",
        f"{encoded([1])}.e30.e30",
        f"{encoded(7)}.e30.e30",
        f"{encoded(b'[' * 9_000)}.e30.e30",
        f"{encoded({'alg': 'ES256', 'kid': 7})}.e30.e30",
        f"{encoded({'alg': 'ES256', 'crit': ['x'], 'x': 1})}.e30.e30",
        f"{encoded({'alg': 'ES256', 'b64': False})}.e30.e30",
        f"{encoded({'alg': 'ES256', 'a': 'a' * MAX_HEADER_CHARACTERS})}.e30.e30",
        f"{encoded({'alg': 'ES256'})}.e30.{'a' * 3000}",
        f"{encoded({'alg': 'ES256'})}.e.e30",
        f"{encoded({'alg': 'ES256'})}.e30.~~~",
    ],
)
def test_what_is_no_token(issuer: Issuer, token: str) -> None:
    with pytest.raises(TokenError):
        checked(issuer, token)


def test_text_that_is_no_claims(issuer: Issuer) -> None:
    from joserfc import jws

    token = jws.serialize_compact({"alg": "ES256"}, b"[1]", issuer.keys[0], ["ES256"])
    with pytest.raises(TokenError, match="its text is not an object"):
        checked(issuer, token)


async def test_an_unknown_key_is_fetched(issuer: Issuer) -> None:
    fetched = asyncio.get_running_loop().create_future()
    source = Source(None, fetched)
    token = issuer.sign(alice())
    with pytest.raises(NotYetError) as wait:
        tokens(source).identity_of(token)
    assert wait.value.fetched is fetched
    source.keys = read_keys(issuer.key_set())
    assert tokens(source).identity_of(token) == ALICE
    assert source.asked == 1


def test_keys_that_cannot_be_fetched(issuer: Issuer) -> None:
    with pytest.raises(TokenError, match="keys have not been read yet"):
        tokens(Source(None)).identity_of(issuer.sign(alice()))


def test_other_keys_are_left_out(issuer: Issuer) -> None:
    own = issuer.keys[0].as_dict(private=False)
    secret = jwk.OctKey.generate_key(256).as_dict()
    exchange = jwk.OKPKey.generate_key("X25519").as_dict(private=False)
    keys = [
        own | {"use": "enc"},
        secret,
        exchange,
        {"kty": "AKP", "pub": "x"},
        {"kty": "EC", "crv": "P-256", "x": "!", "y": "!"},
        {"kty": "RSA", "n": encoded((2**1000 + 1).to_bytes(126, "big")), "e": "AQAB"},
        {"kty": ["RSA"]},
        own | {"key_ops": ["sign"]},
        7,
    ]
    with pytest.raises(KeysError, match="no public key"):
        read_keys(json.dumps({"keys": keys}).encode())
    assert len(read_keys(json.dumps({"keys": [*keys, own]}).encode())) == 1


def test_a_key_with_an_algorithm_of_its_own(rsa: Issuer) -> None:
    own = rsa.keys[0].as_dict(private=False) | {"alg": "PS256", "use": "sig"}
    source = Source(read_keys(json.dumps({"keys": [own]}).encode()))
    assert tokens(source).identity_of(rsa.sign(alice(), "PS256")) == ALICE
    with pytest.raises(TokenError, match="no key '1' for RS256"):
        tokens(source).identity_of(rsa.sign(alice(), "RS256"))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b'{"keys": {}}',
        b'{"keys": []}',
        json.dumps({"keys": [{}] * (MAX_KEYS + 1)}).encode(),
    ],
)
def test_what_is_no_key_set(text: bytes) -> None:
    with pytest.raises(KeysError):
        read_keys(text)
