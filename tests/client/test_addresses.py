"""Bootstrap servers, and whether anything listens there."""

from __future__ import annotations

import socket

import pytest

from ottla.client.addresses import addresses, check_reachable
from ottla.client.errors import AddressError, UnreachableError


@pytest.mark.parametrize(
    ("bootstrap", "expected"),
    [
        ("localhost", [("localhost", 9092)]),
        ("a:1,b:2", [("a", 1), ("b", 2)]),
        ("a:1, b:2", [("a", 1), ("b", 2)]),
        ("[::1]:9", [("::1", 9)]),
        ("[::1]", [("::1", 9092)]),
        ("PLAINTEXT://a:1", [("a", 1)]),
    ],
)
def test_addresses(bootstrap: str, expected: list[tuple[str, int]]) -> None:
    assert addresses(bootstrap) == expected


@pytest.mark.parametrize(
    "bootstrap", ["", "http://a:9092", "a:1,https://b:2", ":9092", "a:b", "a:0", "a:65536", "a:1,"]
)
def test_wrong_addresses(bootstrap: str) -> None:
    with pytest.raises(AddressError, match="bootstrap must be HOST:PORT"):
        addresses(bootstrap)


def test_one_that_can_be_reached_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_reachable(f"127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}")


def test_refused_and_unknown_hosts_say_why() -> None:
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1: connection refused"):
        check_reachable("127.0.0.1:1")
    with pytest.raises(UnreachableError, match=r"unknown host '.*'"):
        check_reachable("no-such-host.invalid:1")
