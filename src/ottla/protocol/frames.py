"""Requests and responses in their frames.

Format (https://kafka.apache.org/protocol): int32 size, then that many bytes: a header and a body.
Request header v1: int16 key, int16 version, int32 correlation id, nullable string client id; v2
(flexible versions) adds tagged fields. Response header v0: int32 correlation id; v1 adds tagged
fields. The response to ApiVersions always has header v0, so that a client of any age can read it
(KIP-511).
"""

import sys
from collections.abc import Callable
from functools import lru_cache
from struct import Struct, error
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.protocol import primitives
from ottla.protocol.codec import decode, encode
from ottla.protocol.codec_source import read_tags
from ottla.protocol.errors import DecodeError
from ottla.protocol.frame_limits import budget_of
from ottla.protocol.message_budget import HEADER, MESSAGE, RESPONSE, Budget, LongMessageError, left
from ottla.protocol.messages import message_class
from ottla.protocol.primitives import Buffer, Output
from ottla.protocol.versions import API_VERSIONS

_HEADER: Final = Struct(">hhih")
_SIZE_AND_ID: Final = Struct(">ii")
_SIZE: Final = Struct(">i")
_write_client_id = primitives.text(compact=False, null_allowed=True)[1]


class RequestHeader(NamedTuple):
    key: int
    version: int
    correlation_id: int
    client_id: str
    """Empty if the client sent none."""
    body_position: int
    """The end of header v1; the tagged fields of a flexible version follow."""


def read_request_header(frame: Buffer) -> RequestHeader:
    """The header of the request in `frame` (which starts after the size). Raises DecodeError."""
    try:
        key, version, correlation_id, size = _HEADER.unpack_from(frame, 0)
    except error:
        raise DecodeError("the bytes end within the request header") from None
    end = _HEADER.size + size
    if size < 0:
        if size != -1:
            raise DecodeError(f"a client id of {size} bytes")
        return RequestHeader(key, version, correlation_id, "", _HEADER.size)
    if end > len(frame):
        raise DecodeError("the bytes end within the request header")
    try:
        client_id = str(frame[_HEADER.size : end], "utf-8")
    except UnicodeDecodeError:
        raise DecodeError("a client id that is not UTF-8") from None
    return RequestHeader(key, version, correlation_id, client_id, end)


BodyReader: TypeAlias = Callable[[Buffer, int, Budget], Any]


@lru_cache(maxsize=1024)
def body_reader(key: int, version: int) -> BodyReader:
    """Reads the bodies of one request type in one version: takes the frame, the header's end and
    what the message may hold, returns kio's message. It raises DecodeError, and LongMessageError
    with a smaller budget than MESSAGE.
    """
    cls: Any = message_class(key, version, "request")
    flexible: bool = cls.__flexible__

    def read(frame: Buffer, position: int, budget: Budget) -> Any:
        if flexible:
            position = _after_tags(frame, position)
        return decode(cls, frame, position, budget)[0]

    most = budget_of(key)

    def read_less(frame: Buffer, position: int, budget: Budget) -> Any:
        if budget.elements <= most.elements:
            return read(frame, position, budget)
        try:
            return read(frame, position, most)
        except LongMessageError:
            raise DecodeError(
                f"{cls.__name__}: more than {most.elements:,} elements in arrays, "
                f"or more than {most.tags:,} tagged fields"
            ) from None

    return read if most is MESSAGE else read_less


def read_request_body(header: RequestHeader, frame: Buffer) -> Any:
    """The request's message. Raises DecodeError."""
    return body_reader(header.key, header.version)(frame, header.body_position, MESSAGE)


def _after_tags(frame: Buffer, position: int) -> int:
    try:
        # Almost always empty.
        if not frame[position]:
            return position + 1
        left.set(HEADER)
        return read_tags(frame, position, {}, {})
    except IndexError:
        raise DecodeError("the bytes end within the request header") from None
    except LongMessageError:
        raise DecodeError(f"more than {HEADER.tags} tagged fields in the request header") from None


def write_response(
    response: Any, correlation_id: int, max_elements: int = sys.maxsize
) -> list[Buffer | bytearray]:
    """The whole frame of a response, size included, in parts to be sent in order. Raises
    LongMessageError if it has more than `max_elements` elements in arrays.
    """
    output = Output(max_elements)
    output.tail += _SIZE_AND_ID.pack(0, correlation_id)
    if response.__flexible__ and response.__api_key__ != API_VERSIONS:
        output.tail.append(0)
    return _sized(encode(response, output))


def write_request(request: Any, correlation_id: int, client_id: str | None) -> bytes:
    """The whole frame of a request, size included."""
    output = Output()
    output.tail += _SIZE_AND_ID.pack(0, (request.__api_key__ << 16) + request.__version__)
    output.tail += _SIZE.pack(correlation_id)
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
        position = _after_tags(frame, position)
    response, _ = decode(cls, frame, position, RESPONSE)
    return correlation_id, response


def _sized(output: Output) -> list[Buffer | bytearray]:
    """The parts of a message, with its size in the reserved first four bytes."""
    parts = output.parts()
    first = parts[0]
    assert isinstance(first, bytearray)
    size = len(first) if len(parts) == 1 else sum(map(len, parts))
    _SIZE.pack_into(first, 0, size - _SIZE.size)
    return parts
