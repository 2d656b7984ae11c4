from __future__ import annotations

from typing import Any

import pytest
from tests.security.issuer import claims_of

from ottla.security.sasl.mechanism import Identity
from ottla.security.sasl.oauthbearer import INSUFFICIENT_SCOPE, TokenError
from ottla.security.sasl.token_claims import (
    MAX_NAME_CHARACTERS,
    ClaimRules,
    identity_in,
    read_object,
)

NOW_MS = 1_700_000_000_000
NOW_S = NOW_MS // 1000
RULES = ClaimRules(("kafka", "other"), "https://issuer.example")


def checked(rules: ClaimRules = RULES, *, lasts_s: float = 600, **more: Any) -> Identity:
    return identity_in(claims_of("alice", NOW_S, lasts_s, **more), rules, NOW_MS)


def test_who_it_is_and_until_when() -> None:
    assert checked() == Identity("alice", NOW_MS + 600_000)
    assert checked(lasts_s=0.5) == Identity("alice", NOW_MS + 500)
    assert checked(sub="  M\u00fcller, 1/2 ").name == "M\u00fcller, 1/2"
    assert checked(RULES._replace(subject_claim="azp"), azp="b").name == "b"


@pytest.mark.parametrize("audience", ["other", ["x", "kafka"]])
def test_audiences(audience: Any) -> None:
    assert checked(aud=audience).name == "alice"


def test_nothing_is_demanded_that_is_not_set() -> None:
    assert checked(ClaimRules(), aud=None, iss=None, scope=None).name == "alice"


def test_clocks_differ() -> None:
    # What has expired is valid for the rest of the skew.
    assert checked(lasts_s=-29, iat=NOW_S - 60).expires_ms == NOW_MS + 1_000
    assert checked(nbf=NOW_S + 30).name == "alice"
    with pytest.raises(TokenError, match="it expired 30 s ago"):
        checked(lasts_s=-30, iat=NOW_S - 60)
    with pytest.raises(TokenError, match="valid in 31 s"):
        checked(nbf=NOW_S + 31)
    with pytest.raises(TokenError, match="it expired 0 s ago"):
        checked(RULES._replace(skew_ms=0), lasts_s=0)


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"exp": None}, "exp, a time, is missing"),
        ({"iat": None}, "iat, a time, is missing"),
        ({"exp": "2030"}, "exp, a time, is '2030'"),
        ({"exp": True}, "exp, a time, is True"),
        ({"exp": float("nan")}, "exp is no time"),
        ({"exp": float("inf")}, "exp is no time"),
        ({"exp": -1}, "exp is no time"),
        ({"exp": 10**400}, "exp is no time"),
        ({"nbf": []}, r"nbf, a time, is \[\]"),
        ({"iat": NOW_S + 601}, "issued after it expires"),
        ({"aud": "elsewhere"}, "its audience is 'elsewhere', not kafka, other"),
        ({"aud": None}, "its audience is missing"),
        ({"aud": [1]}, "aud is neither a text nor a list"),
        ({"aud": {"kafka": 1}}, "aud is neither a text nor a list"),
        ({"iss": "https://evil.example"}, "its issuer is 'https://evil.example'"),
        ({"iss": None}, "its issuer is missing"),
        ({"iss": ["https://issuer.example"]}, "its issuer is"),
        ({"sub": None}, "sub, the client's name, is missing"),
        ({"sub": " "}, "sub, the client's name, is ' '"),
        ({"sub": 7}, "sub, the client's name, is 7"),
        ({"sub": "a" * (MAX_NAME_CHARACTERS + 1)}, "more than 1000 characters"),
        ({"scope": 7}, "scope is neither"),
    ],
)
def test_what_is_refused(claims: dict[str, Any], said: str) -> None:
    with pytest.raises(TokenError, match=said) as error:
        checked(**claims)
    assert error.value.as_json() == '{"status":"invalid_token"}'


def test_scopes() -> None:
    rules = RULES._replace(required_scopes=("r", "w"), scope_claim="scp")
    assert checked(rules, scp="x w r").name == "alice"
    assert checked(rules, scp=["w", "r"]).name == "alice"
    with pytest.raises(TokenError, match="it lacks scope w") as error:
        checked(rules, scp="r")
    assert (error.value.status, error.value.scope) == (INSUFFICIENT_SCOPE, "r w")


@pytest.mark.parametrize(
    "text", [b"", b"{", b"\xff", b"[1]", b"[" * 60_000, b'{"a":' + b"9" * 5_000 + b"}"]
)
def test_what_is_no_object(text: bytes) -> None:
    with pytest.raises(TokenError, match="its text is not"):
        read_object(text, "its text")
