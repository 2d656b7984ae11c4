from __future__ import annotations

from typing import Any

import pytest
from tests.security.issuer import claims_of, encoded

from ottla.security.sasl.mechanism import Identity
from ottla.security.sasl.oauthbearer import TokenError
from ottla.security.sasl.unsecured_token import UnsecuredTokens, unsecured_rules

NOW_S = 1_700_000_000


def checked(token: str, **options: str) -> Identity:
    named = {f"unsecuredValidator{name}": value for name, value in options.items()}
    return UnsecuredTokens(unsecured_rules(named), lambda: NOW_S * 1000).identity_of(token)


def token(alg: Any = "none", signature: str = "", **claims: Any) -> str:
    return ".".join(
        (encoded({"alg": alg}), encoded(claims_of("alice", NOW_S, **claims)), signature)
    )


def test_whoever_says_so() -> None:
    assert checked(token(iat=None)) == Identity("alice", (NOW_S + 600) * 1000)


def test_options() -> None:
    assert checked(token(who="b"), PrincipalClaimName="who").name == "b"
    assert checked(token(can=["r"]), ScopeClaimName="can", RequiredScope="r").name == "alice"
    with pytest.raises(TokenError, match="it lacks scope w"):
        checked(token(), RequiredScope="kafka w")
    late = token(exp=NOW_S - 1, iat=None)
    assert checked(late, AllowableClockSkewMs="1001").name == "alice"
    with pytest.raises(TokenError, match="expired 1 s ago"):
        checked(late)
    for wrong in ("a", "-1", "9999999999"):
        with pytest.raises(ValueError, match="AllowableClockSkewMs must be a number"):
            checked(late, AllowableClockSkewMs=wrong)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (token("RS256"), "it is signed"),
        (token(signature="abc"), "it is signed"),
        (token(["none"]), "it is signed"),
        ("a.b", "three parts"),
        ("a.b.c.d", "three parts"),
        ("a.b.", "base64url"),
        (f"{encoded([1])}.{encoded({})}.", "its header is not an object"),
        (f"{encoded({'alg': 'none'})}.{encoded(b'x')}.", "its text is not JSON"),
        (f"{encoded({'alg': 'none'})}..", "its text is not JSON"),
    ],
)
def test_what_is_refused(wrong: str, said: str) -> None:
    with pytest.raises(TokenError, match=said):
        checked(wrong)
