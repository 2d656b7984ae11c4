"""Readers and writers of the protocol's primitive types.

A reader takes a buffer and a position, and returns the value and the position after it. If the
bytes end too early it raises DecodeError, struct.error or IndexError; `codec` turns all of them
into DecodeError. A writer takes an Output and a value.

Formats: https://kafka.apache.org/protocol#protocol_types, and KIP-482 for the compact forms.
Times are plain integers of milliseconds: any 64 bits may arrive from the network, and neither
timedelta nor datetime can hold them all.
"""

import sys
from collections.abc import Callable
from struct import Struct
from typing import Any, TypeAlias
from uuid import UUID

from ottla.protocol.errors import DecodeError, ErrorCode
from ottla.protocol.message_budget import LongMessageError, spend_elements

Buffer: TypeAlias = bytes | memoryview
Reader: TypeAlias = Callable[[Buffer, int], tuple[Any, int]]
Writer: TypeAlias = Callable[["Output", Any], None]

MAX_STRING_BYTES = 2**15 - 1
"""Kafka refuses longer ones in the compact form too, so that they fit in every version."""

COPY_LIMIT_BYTES = 4096
"""Longer record data is passed to the socket as it is, not copied into the response."""

_ZERO_UUID = UUID(int=0)


class Output:
    """The bytes of a message being built: small fields joined, large record data by reference."""

    __slots__ = ("_parts", "elements_left", "tail")

    def __init__(self, max_elements: int = sys.maxsize) -> None:
        """With more than `max_elements` elements in arrays, LongMessageError ends the writing."""
        self._parts: list[Buffer | bytearray] = []
        self.elements_left = max_elements
        self.tail = bytearray()

    def spend_elements(self, count: int) -> None:
        """Raises LongMessageError."""
        self.elements_left -= count
        if self.elements_left < 0:
            raise LongMessageError

    def append_data(self, data: Buffer) -> None:
        if len(data) <= COPY_LIMIT_BYTES:
            self.tail += data
            return
        self._parts.append(self.tail)
        self._parts.append(data)
        self.tail = bytearray()

    def parts(self) -> list[Buffer | bytearray]:
        return [*self._parts, self.tail] if self.tail else list(self._parts)


def fixed(code: str) -> tuple[Reader, Writer]:
    """Reader and writer of one big-endian number, `code` as in the struct module."""
    layout = Struct(">" + code)
    unpack, pack, size = layout.unpack_from, layout.pack, layout.size

    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        return unpack(buffer, position)[0], position + size

    def write(output: Output, value: Any) -> None:
        output.tail += pack(value)

    return read, write


read_int8, write_int8 = fixed("b")
read_int16, write_int16 = fixed("h")
read_int32, write_int32 = fixed("i")
read_int64, write_int64 = fixed("q")
read_uint16, write_uint16 = fixed("H")
read_float64, write_float64 = fixed("d")
read_bool, write_bool = fixed("?")


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """An unsigned varint of at most five bytes."""
    byte = buffer[position]
    if byte < 0x80:
        return byte, position + 1
    value, shift = byte & 0x7F, 7
    for end in range(position + 1, position + 5):
        byte = buffer[end]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, end + 1
        shift += 7
    raise DecodeError("a varint longer than five bytes")


def write_varint(output: Output, value: int) -> None:
    while value > 0x7F:
        output.tail.append(value & 0x7F | 0x80)
        value >>= 7
    output.tail.append(value)


def take(buffer: Buffer, position: int, size: int) -> tuple[Buffer, int]:
    """`size` bytes at `position`; by reference if the buffer is a memoryview."""
    end = position + size
    if size < 0 or end > len(buffer):
        raise DecodeError(f"a field of {size} bytes, but {len(buffer) - position} are left")
    return buffer[position:end], end


def _compact_length(buffer: Buffer, position: int) -> tuple[int, int]:
    length, position = read_varint(buffer, position)
    return length - 1, position


def _nullable(
    read_length: Reader,
    convert: Callable[[Buffer], Any],
    null_allowed: bool,
    max_bytes: int = 2**31 - 1,
) -> Reader:
    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        size, position = read_length(buffer, position)
        if size == -1:
            if null_allowed:
                return None, position
            raise DecodeError("null in a field that must not be null")
        if size > max_bytes:
            raise DecodeError(f"a string of {size} bytes; the maximum is {max_bytes}")
        data, position = take(buffer, position, size)
        return convert(data), position

    return read


def _text(data: Buffer) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(f"a string that is not UTF-8: {error.reason}") from None


def _unchanged(data: Buffer) -> Buffer:
    return data


def _write_length(output: Output, size: int, compact: bool, write_legacy: Writer) -> None:
    if compact:
        write_varint(output, size + 1)
    else:
        write_legacy(output, size)


def text(compact: bool, null_allowed: bool) -> tuple[Reader, Writer]:
    def write(output: Output, value: str | None) -> None:
        if value is None:
            assert null_allowed, "null in a string that is never null"
            _write_length(output, -1, compact, write_int16)
            return
        data = value.encode()
        _write_length(output, len(data), compact, write_int16)
        output.tail += data

    read_length = _compact_length if compact else read_int16
    return _nullable(read_length, _text, null_allowed, MAX_STRING_BYTES), write


def data(compact: bool, null_allowed: bool, copied: bool) -> tuple[Reader, Writer]:
    """Byte strings; `copied` returns new bytes, else (records) a view into the frame."""

    def write(output: Output, value: Buffer | None) -> None:
        if value is None:
            assert null_allowed, "null in bytes that are never null"
            _write_length(output, -1, compact, write_int32)
            return
        _write_length(output, len(value), compact, write_int32)
        output.append_data(value)

    convert: Callable[[Buffer], Any] = bytes if copied else _unchanged
    return _nullable(_compact_length if compact else read_int32, convert, null_allowed), write


def items_reader(
    read_item: Reader, null_allowed: bool
) -> Callable[[Buffer, int, int], tuple[Any, int]]:
    """Reads `count` elements of an array; -1 is null."""

    def read(buffer: Buffer, position: int, count: int) -> tuple[Any, int]:
        if count < 0:
            # Kafka treats a null array as the client's error if null is not allowed.
            if count == -1 and null_allowed:
                return None, position
            raise DecodeError(f"an array of {count} elements")
        if count > len(buffer) - position:
            raise DecodeError(f"an array of {count} elements in {len(buffer) - position} bytes")
        if count > 1:
            spend_elements(count)
        items = []
        for _ in range(count):
            value, position = read_item(buffer, position)
            items.append(value)
        return tuple(items), position

    return read


def array(item: tuple[Reader, Writer], compact: bool, null_allowed: bool) -> tuple[Reader, Writer]:
    read_item, write_item = item
    read_length = _compact_length if compact else read_int32

    read_items = items_reader(read_item, null_allowed)

    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        count, position = read_length(buffer, position)
        return read_items(buffer, position, count)

    def write(output: Output, value: Any) -> None:
        if value is None:
            assert null_allowed, "null in an array that is never null"
            _write_length(output, -1, compact, write_int32)
            return
        _write_length(output, len(value), compact, write_int32)
        if len(value) > 1:
            output.spend_elements(len(value))
        for element in value:
            write_item(output, element)

    return read, write


def read_uuid(buffer: Buffer, position: int) -> tuple[UUID | None, int]:
    raw, position = take(buffer, position, 16)
    value = UUID(bytes=bytes(raw))
    return (None if value == _ZERO_UUID else value), position


def write_uuid(output: Output, value: UUID | None) -> None:
    output.tail += (value or _ZERO_UUID).bytes


def read_error_code(buffer: Buffer, position: int) -> tuple[ErrorCode, int]:
    number, position = read_int16(buffer, position)
    try:
        return ErrorCode(number), position
    except ValueError:
        raise DecodeError(f"an unknown error code {number}") from None
