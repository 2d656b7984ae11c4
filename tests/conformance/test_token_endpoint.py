"""The issuer of tokens that librdkafka's test 0126 gets."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from conformance.token_endpoint import (
    ALGORITHM,
    ASSERTION,
    AUDIENCE,
    SCOPES,
    Issuer,
    serving,
)
from joserfc import jwk, jwt
from joserfc.errors import BadSignatureError

SECRET = {"Authorization": "Basic MTIzOmFiYw=="}


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(scope="module")
def address(issuer: Issuer) -> Iterator[str]:
    with serving(issuer) as one:
        yield one


def told(url: str, headers: dict[str, str] | None = None, **body: str) -> dict[str, Any]:
    """A POST if there is a body. Raises HTTPError."""
    data = urlencode(body).encode() if body else None
    request = urllib.request.Request(url, data, headers or {})
    with urllib.request.urlopen(request, timeout=20) as answer:
        said: dict[str, Any] = json.load(answer)
        return said


def claims_in(address: str, token: str) -> dict[str, Any]:
    """By the keys that the issuer shows."""
    keys = jwk.KeySet.import_key_set(told(f"{address}/keys"))  # type: ignore[arg-type]
    claims: dict[str, Any] = jwt.decode(token, keys, algorithms=[ALGORITHM]).claims
    return claims


def test_a_secret_gets_a_token(address: str) -> None:
    said = told(f"{address}/retrieve", SECRET, grant_type="client_credentials", scope=SCOPES[0])
    claims = claims_in(address, said["access_token"])
    assert (claims["sub"], claims["aud"]) == ("subject", AUDIENCE)
    assert claims["exp"] > time.time()


def test_an_assertion_gets_a_token(address: str, issuer: Issuer) -> None:
    assertion = jwt.encode({"alg": ALGORITHM}, {"sub": "testuser"}, issuer.client_key)
    said = told(f"{address}/retrieve", grant_type=ASSERTION, assertion=assertion)
    assert claims_in(address, said["access_token"])["client_id"] == "subject"


def test_a_query_as_to_a_metadata_service(address: str) -> None:
    query = "client_id=c&resource=r&api-version=2025-04-07"
    assert "access_token" in told(f"{address}/retrieve?{query}", {"Metadata": "true"})
    with pytest.raises(urllib.error.HTTPError, match="400"):
        told(f"{address}/retrieve?client_id=c&resource=r", {"Metadata": "true"})


def test_tokens_that_are_wrong(address: str, issuer: Issuer) -> None:
    over = told(f"{address}/retrieve/expire", SECRET, grant_type="client_credentials")
    assert claims_in(address, over["access_token"])["exp"] < time.time()
    bad = told(f"{address}/retrieve/badformat", SECRET, grant_type="client_credentials")
    with pytest.raises(BadSignatureError):
        claims_in(address, bad["access_token"])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"grant_type": "client_credentials"}, "no Authorization"),
        ({"grant_type": "client_credentials", "scope": "other"}, "invalid scope other"),
        ({"grant_type": "password"}, "invalid grant_type password"),
        ({"grant_type": ASSERTION}, "invalid assertion"),
        ({"grant_type": ASSERTION, "assertion": "a.b.c"}, "invalid assertion"),
    ],
)
def test_who_gets_none(address: str, body: dict[str, str], reason: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        told(f"{address}/retrieve", None, **body)
    assert refused.value.code == 400
    assert reason in json.load(refused.value)["error"]


def test_an_assertion_of_somebody_else(address: str) -> None:
    other = Issuer().client_key
    assertion = jwt.encode({"alg": ALGORITHM}, {"sub": "testuser"}, other)
    with pytest.raises(urllib.error.HTTPError, match="400"):
        told(f"{address}/retrieve", grant_type=ASSERTION, assertion=assertion)
