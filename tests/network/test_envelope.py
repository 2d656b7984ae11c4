from typing import Any

import pytest

from ottla.network.client_session import ClientSession
from ottla.network.envelope import sender, wrapped
from ottla.protocol.errors import DecodeError
from ottla.protocol.messages import messages_of
from ottla.security.principal import Principal

FORWARDER = ClientSession(9, "10.0.0.2", "REPLICATION", "here", 9093)


def session(host: str, principal: Principal) -> ClientSession:
    return ClientSession(1, host, "PLAINTEXT", "there", 9092, principal)


@pytest.mark.parametrize(
    ("host", "expected"), [("192.0.2.7", "192.0.2.7"), ("::1", "::1"), ("fe80::1%eth0", "fe80::1")]
)
def test_the_clients_identity_arrives(host: str, expected: str) -> None:
    envelope = wrapped(b"the frame", session(host, Principal("User", "alice")))
    assert envelope.request_data == b"the frame"
    client = sender(envelope, FORWARDER)
    assert (client.host, client.address) == (expected, f"/{expected}")
    assert str(client.principal) == "User:alice"
    assert (client.connection_id, client.listener) == (9, "REPLICATION")


def test_the_principal_is_encoded_as_by_kafkas_serde() -> None:
    """int16 version, then type, name (compact strings), a boolean, and no tagged fields."""
    envelope = wrapped(b"", session("::1", Principal("User", "ANONYMOUS")))
    assert envelope.request_principal == b"\0\0" + b"\x05User" + b"\x0aANONYMOUS" + b"\0" + b"\0"


def envelope(**fields: Any) -> Any:
    good = wrapped(b"", session("::1", Principal("User", "a")))
    build = messages_of(58, 0, "request")
    given = {name: getattr(good, name) for name in ("request_principal", "client_host_address")}
    return build.EnvelopeRequest(**{"request_data": b"", **given, **fields})


@pytest.mark.parametrize("address", [b"", b"abc", bytes(17)])
def test_an_address_of_another_length_is_refused(address: bytes) -> None:
    with pytest.raises(DecodeError, match=f"address has {len(address)} bytes"):
        sender(envelope(client_host_address=address), FORWARDER)


@pytest.mark.parametrize("principal", [None, b"", b"\0\1\2\2", b"\0\0", b"\0\0\x7f"])
def test_an_invalid_principal_is_refused(principal: bytes | None) -> None:
    with pytest.raises(DecodeError):
        sender(envelope(request_principal=principal), FORWARDER)
