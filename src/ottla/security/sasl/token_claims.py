"""What a token claims, and whether it is acceptable: RFC 7519, and Kafka's BrokerJwtValidator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ottla.security.sasl.mechanism import Identity
from ottla.security.sasl.oauthbearer import INSUFFICIENT_SCOPE, TokenError

MAX_NAME_CHARACTERS: Final = 1_000
MAX_SECONDS: Final = 10**11
"""Since 1970: the year 5138."""

Claims = Mapping[str, Any]


class ClaimRules(NamedTuple):
    """What a token must claim."""

    audiences: tuple[str, ...] = ()
    """It must be for one of them; empty: for anybody."""
    issuer: str | None = None
    skew_ms: int = 30_000
    """How far the clocks of the issuer and of this broker may differ."""
    subject_claim: str = "sub"
    """Its value is the client's name."""
    scope_claim: str = "scope"
    required_scopes: tuple[str, ...] = ()
    needs_issue_time: bool = True


def read_object(text: bytes, what: str) -> dict[str, Any]:
    """An object of JSON. Raises TokenError; `what` is for its text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # numbers of 5,000 digits, and 1,000 brackets
        raise TokenError(f"{what} is not JSON") from None
    if not isinstance(value, dict):
        raise TokenError(f"{what} is not an object of JSON")
    return value


def identity_in(claims: Claims, rules: ClaimRules, now_ms: int) -> Identity:
    """Who the client is, by a token whose signature was checked. Raises TokenError."""
    expires_ms = _time(claims, "exp", is_needed=True)
    assert expires_ms is not None
    if now_ms >= expires_ms + rules.skew_ms:
        raise TokenError(f"it expired {(now_ms - expires_ms) // 1000} s ago")
    begins_ms = _time(claims, "nbf", is_needed=False)
    if begins_ms is not None and now_ms < begins_ms - rules.skew_ms:
        raise TokenError(f"it begins to be valid in {(begins_ms - now_ms) // 1000} s")
    issued_ms = _time(claims, "iat", is_needed=rules.needs_issue_time)
    if issued_ms is not None and issued_ms > expires_ms:
        raise TokenError("it was issued after it expires")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise TokenError(f"its issuer is {_shown(claims.get('iss'))}, not {rules.issuer}")
    if rules.audiences and not _words(claims, "aud") & set(rules.audiences):
        wanted = ", ".join(rules.audiences)
        raise TokenError(f"its audience is {_shown(claims.get('aud'))}, not {wanted}")
    _check_scopes(claims, rules)
    # One that has expired by no more than the skew is valid for the rest of it.
    if now_ms >= expires_ms:
        expires_ms += rules.skew_ms
    return Identity(_name(claims, rules.subject_claim), expires_ms)


def _name(claims: Claims, claim: str) -> str:
    name = claims.get(claim)
    if not isinstance(name, str) or not name.strip():
        raise TokenError(f"its claim {claim}, the client's name, is {_shown(name)}")
    if len(name) > MAX_NAME_CHARACTERS:
        raise TokenError(f"its claim {claim} has more than {MAX_NAME_CHARACTERS} characters")
    return name.strip()


def _time(claims: Claims, claim: str, *, is_needed: bool) -> int | None:
    """In ms since 1970."""
    value = claims.get(claim)
    if value is None and not is_needed:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenError(f"its claim {claim}, a time, is {_shown(value)}")
    if not 0 <= value <= MAX_SECONDS:  # nor is NaN
        raise TokenError(f"its claim {claim} is no time")
    return int(value * 1000)


def _check_scopes(claims: Claims, rules: ClaimRules) -> None:
    scopes = _words(claims, rules.scope_claim, separated=True)
    lacking = [each for each in rules.required_scopes if each not in scopes]
    if lacking:
        wanted = " ".join(rules.required_scopes)
        raise TokenError(f"it lacks scope {', '.join(lacking)}", INSUFFICIENT_SCOPE, wanted)


def _words(claims: Claims, claim: str, *, separated: bool = False) -> set[str]:
    """A claim that is a text or a list of texts; `separated`: a text has several, with spaces."""
    value = claims.get(claim)
    if value is None:
        return set()
    if isinstance(value, str):
        return set(value.split()) if separated else {value}
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return set(value)
    raise TokenError(f"its claim {claim} is neither a text nor a list of texts")


def _shown(value: object) -> str:
    return "missing" if value is None else repr(value)[:100]
