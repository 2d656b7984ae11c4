"""A client's request that a broker forwards to the controller, with the client's identity: KIP-590.

Envelope (key 58): the request's frame as the client sent it, the client's principal as a version
(int16) and a DefaultPrincipalData message, and the client's address as 4 or 16 bytes. The response
holds the response's frame, or the error NOT_CONTROLLER if nothing was done. (Both frames begin with
the header; neither has its size.)
"""

from __future__ import annotations

import ipaddress
from importlib import import_module
from typing import Any, Final

from ottla.network.client_session import ClientSession
from ottla.protocol.codec import codec_of, decode, encode
from ottla.protocol.errors import DecodeError
from ottla.protocol.messages import messages_of
from ottla.protocol.primitives import Buffer
from ottla.protocol.versions import ENVELOPE
from ottla.security.principal import Principal

_VERSION: Final = bytes(2)


def wrapped(frame: Buffer, session: ClientSession) -> Any:
    """The request to the controller."""
    build = messages_of(ENVELOPE, 0, "request")
    return build.EnvelopeRequest(
        request_data=bytes(frame),
        request_principal=_written(session.principal),
        client_host_address=_packed(session.host),
    )


def sender(envelope: Any, forwarder: ClientSession) -> ClientSession:
    """The session of the client whose request is inside. Raises DecodeError."""
    try:
        host = str(ipaddress.ip_address(envelope.client_host_address))
    except ValueError:
        size = len(envelope.client_host_address)
        raise DecodeError(f"the client's address has {size} bytes; 4 or 16 are allowed") from None
    return ClientSession(
        forwarder.connection_id,
        host,
        forwarder.listener,
        forwarder.advertised_host,
        forwarder.advertised_port,
        _read(envelope.request_principal),
    )


def _packed(host: str) -> bytes:
    # An IPv6 address may name its interface after a "%".
    return ipaddress.ip_address(host.partition("%")[0]).packed


def _principal_class() -> Any:
    return import_module("kio.schema.default_principal_data.v0.data").DefaultPrincipalData


def _written(principal: Principal) -> bytes:
    build = codec_of(_principal_class()).builder(_no_others)
    message = build(type_=principal.type, name=principal.name)
    return _VERSION + b"".join(encode(message).parts())


def _no_others(fields: dict[str, Any]) -> None:
    raise AssertionError(f"the definition has no {sorted(fields)}")


def _read(data: bytes | None) -> Principal:
    if data is None or data[:2] != _VERSION:
        raise DecodeError("the principal's version is not 0")
    found, _ = decode(_principal_class(), data, 2)
    return Principal(found.type_, found.name)
