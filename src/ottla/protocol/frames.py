"""Requests and responses as they stand in a frame.

Format (https://kafka.apache.org/protocol): int32 size, then that many bytes: a header and a body.
Request header v1: int16 key, int16 version, int32 correlation id, nullable string client id; v2
(flexible versions) adds tagged fields. Response header v0: int32 correlation id; v1 adds tagged
fields. The response to ApiVersions always has header v0, so that a client of any age can read it
(KIP-511).
"""

from struct import Struct, error
from typing import Any, NamedTuple

from ottla.protocol import primitives
from ottla.protocol.codec import decode, encode
from ottla.protocol.codec_source import read_tags
from ottla.protocol.errors import DecodeError
from ottla.protocol.messages import message_class
from ottla.protocol.primitives import Buffer, Output
from ottla.protocol.versions import API_VERSIONS

_FIXED = Struct(">hhi")
_read_client_id, _write_client_id = primitives.text(compact=False, null_allowed=True)


class RequestHeader(NamedTuple):
    key: int
    version: int
    correlation_id: int
    client_id: str
    """Empty where the client gave none."""
    body_position: int
    """Where the header v1 ends; behind it lie the tagged fields of a flexible version."""


def read_request_header(frame: Buffer) -> RequestHeader:
    """The header of the request in `frame` (which begins behind the size). Raises DecodeError."""
    try:
        key, version, correlation_id = _FIXED.unpack_from(frame, 0)
        client_id, position = _read_client_id(frame, _FIXED.size)
    except (error, IndexError):
        raise DecodeError("the bytes end within the request header") from None
    return RequestHeader(key, version, correlation_id, client_id or "", position)


def read_request_body(header: RequestHeader, frame: Buffer) -> Any:
    """The request itself, a message of kio's. Raises DecodeError."""
    cls: Any = message_class(header.key, header.version, "request")
    position = header.body_position
    if cls.__flexible__:
        position = _pass_over_tags(frame, position)
    request, _ = decode(cls, frame, position)
    return request


def _pass_over_tags(frame: Buffer, position: int) -> int:
    try:
        return read_tags(frame, position, {}, {})
    except IndexError:
        raise DecodeError("the bytes end within the request header") from None


def write_response(response: Any, correlation_id: int) -> list[Buffer | bytearray]:
    """The whole frame of a response, size included, in parts that are to be sent in turn."""
    output = Output()
    primitives.write_int32(output, correlation_id)
    if response.__flexible__ and response.__api_key__ != API_VERSIONS:
        output.tail.append(0)
    return _sized(encode(response, output))


def write_request(request: Any, correlation_id: int, client_id: str | None) -> bytes:
    """The whole frame of a request, size included."""
    output = Output()
    output.tail += _FIXED.pack(request.__api_key__, request.__version__, correlation_id)
    _write_client_id(output, client_id)
    if request.__flexible__:
        output.tail.append(0)
    return b"".join(_sized(encode(request, output)))


def read_response(key: int, version: int, frame: Buffer) -> tuple[int, Any]:
    """Correlation id and message of the response in `frame`. Raises DecodeError."""
    cls: Any = message_class(key, version, "response")
    if len(frame) < 4:
        raise DecodeError("the bytes end within the response header")
    correlation_id, position = primitives.read_int32(frame, 0)
    if cls.__flexible__ and key != API_VERSIONS:
        position = _pass_over_tags(frame, position)
    response, _ = decode(cls, frame, position)
    return correlation_id, response


def _sized(output: Output) -> list[Buffer | bytearray]:
    parts = output.parts()
    size = bytearray()
    size += sum(map(len, parts)).to_bytes(4, "big")
    if isinstance(parts[0], bytearray):
        size += parts[0]
        parts[0] = size
        return parts
    return [size, *parts]
