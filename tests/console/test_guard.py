"""Who may ask, and what every response carries."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers
from tests.console.served_console import Visitor

from ottla.console.guard import Guard, host_name, is_loopback


async def nothing(*_: object) -> None:
    raise AssertionError("the application is not asked")


GUARD = Guard(nothing, ["localhost", "127.0.0.1", "::1", "Console.example"])


@pytest.mark.parametrize(
    ("authority", "name"),
    [
        ("localhost:8095", "localhost"),
        ("LOCALHOST", "localhost"),
        ("[::1]:80", "::1"),
        ("localhost.:80", "localhost"),
        ("a@localhost", None),
        ("localhost/x", None),
        ("localhost:x", None),
        ("[::1", None),
        ("", None),
    ],
)
def test_the_host_of_an_authority(authority: str, name: str | None) -> None:
    assert host_name(authority) == name


@pytest.mark.parametrize(
    "host", ["evil.example:8095", "localhost.evil.example", "", "evil.example@localhost"]
)
def test_a_name_that_was_bound_to_this_address_is_refused(host: str) -> None:
    assert "not called" in str(GUARD.refusal("GET", Headers({"host": host})))


@pytest.mark.parametrize("host", ["localhost:8095", "127.0.0.1", "[::1]:1", "console.example"])
def test_its_own_names_are_not(host: str) -> None:
    assert GUARD.refusal("GET", Headers({"host": host})) is None


@pytest.mark.parametrize(
    ("headers", "is_refused"),
    [
        ({}, False),  # no browser
        ({"origin": "http://localhost:1"}, False),
        ({"origin": "https://localhost:1"}, False),  # behind a proxy with TLS
        ({"origin": "http://localhost:2"}, True),
        ({"origin": "http://evil.example"}, True),
        ({"origin": "null"}, True),
        ({"origin": "http://["}, True),
        ({"sec-fetch-site": "same-origin"}, False),
        ({"sec-fetch-site": "cross-site"}, True),
        ({"sec-fetch-site": "same-site"}, True),
    ],
)
def test_a_change_comes_from_a_page_of_the_console(
    headers: dict[str, str], is_refused: bool
) -> None:
    refusal = GUARD.refusal("POST", Headers({"host": "localhost:1", **headers}))
    assert (refusal is not None) is is_refused
    assert GUARD.refusal("GET", Headers({"host": "localhost:1", **headers})) is None


@pytest.mark.parametrize(
    ("site", "kind", "is_refused"),
    [
        ("cross-site", "image", True),
        ("same-site", "empty", True),
        ("cross-site", "document", False),
        ("same-origin", "empty", False),
        ("none", "document", False),
    ],
)
def test_pages_of_others_may_link_and_not_load(site: str, kind: str, is_refused: bool) -> None:
    headers = {"host": "localhost:1", "sec-fetch-site": site, "sec-fetch-dest": kind}
    assert (GUARD.refusal("GET", Headers(headers)) is not None) is is_refused


def test_which_addresses_are_of_this_machine_alone() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.9.9.9", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "", "10.0.0.1", "localhost.example", "127.evil")))


def test_each_response_forbids_scripts_of_others(visitor: Visitor) -> None:
    for path in ("/", "/nowhere", "/static/console.js", "/login"):
        headers = visitor.ask("GET", path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy, path
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
    refused = visitor.ask("GET", "/", headers={"Host": "evil.example"})
    assert refused.status == 403
    assert "content-security-policy" in refused.headers
