"""Kafka's primitive types as the record formats of coordinators use them.

Big-endian integers; strings and byte strings with a signed length before them (2 and 4 bytes, -1
is null), in flexible versions with an unsigned varint of length + 1 (0 is null).
"""

from __future__ import annotations

import struct
from uuid import UUID

_INT8 = struct.Struct(">b")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")

MAX_STRING_BYTES = 0x7FFF
_MAX_VARINT_BYTES = 5


def fits_string(text: str) -> bool:
    """Whether a record has room for this text; flexible requests may bring longer ones."""
    return len(text) <= MAX_STRING_BYTES and (
        text.isascii() or len(text.encode()) <= MAX_STRING_BYTES
    )


def unsigned_varint(value: int) -> bytes:
    """The number in 7 bits a byte, low ones first."""
    if value <= 0x7F:
        return bytes((value,))
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


class Writer:
    """Collects the parts of one key or value."""

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def int8(self, value: int) -> None:
        self.parts.append(_INT8.pack(value))

    def int16(self, value: int) -> None:
        self.parts.append(_INT16.pack(value))

    def int32(self, value: int) -> None:
        self.parts.append(_INT32.pack(value))

    def int64(self, value: int) -> None:
        self.parts.append(_INT64.pack(value))

    def unsigned_varint(self, value: int) -> None:
        self.parts.append(unsigned_varint(value))

    def string(self, value: str) -> None:
        content = value.encode()
        assert len(content) <= MAX_STRING_BYTES, "strings are checked before they are stored"
        self.parts.append(_INT16.pack(len(content)) + content)

    def nullable_string(self, value: str | None) -> None:
        if value is None:
            self.parts.append(b"\xff\xff")
        else:
            self.string(value)

    def compact_string(self, value: str) -> None:
        content = value.encode()
        self.unsigned_varint(len(content) + 1)
        self.parts.append(content)

    def nullable_compact_string(self, value: str | None) -> None:
        if value is None:
            self.parts.append(b"\0")
        else:
            self.compact_string(value)

    def compact_byte_string(self, value: bytes) -> None:
        self.unsigned_varint(len(value) + 1)
        self.parts.append(value)

    def compact_array_size(self, size: int) -> None:
        self.unsigned_varint(size + 1)

    def tagged_fields(self, fields: dict[int, bytes]) -> None:
        """Tag to content, of a flexible version, in the order of the tags."""
        self.unsigned_varint(len(fields))
        for tag in sorted(fields):
            self.unsigned_varint(tag)
            self.unsigned_varint(len(fields[tag]))
            self.parts.append(fields[tag])

    def byte_string(self, value: bytes) -> None:
        self.parts.append(_INT32.pack(len(value)))
        self.parts.append(value)

    def content(self) -> bytes:
        return b"".join(self.parts)


class Reader:
    """Reads one key or value; raises ValueError where the bytes end early or lie."""

    __slots__ = ("buffer", "position")

    def __init__(self, buffer: bytes) -> None:
        self.buffer = buffer
        self.position = 0

    def _integer(self, form: struct.Struct) -> int:
        if self.position + form.size > len(self.buffer):
            raise ValueError(f"ends at byte {len(self.buffer)} inside an integer")
        value: int = form.unpack_from(self.buffer, self.position)[0]
        self.position += form.size
        return value

    def int8(self) -> int:
        return self._integer(_INT8)

    def int16(self) -> int:
        return self._integer(_INT16)

    def int32(self) -> int:
        return self._integer(_INT32)

    def int64(self) -> int:
        return self._integer(_INT64)

    def unsigned_varint(self) -> int:
        value = 0
        for index in range(_MAX_VARINT_BYTES):
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                return value
        raise ValueError(f"varint longer than {_MAX_VARINT_BYTES} bytes")

    def take(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self.buffer):
            raise ValueError(f"{size} bytes at {self.position} of {len(self.buffer)}")
        content = self.buffer[self.position : end]
        self.position = end
        return content

    def nullable_string(self, compact: bool = False) -> str | None:
        size = self.unsigned_varint() - 1 if compact else self.int16()
        return None if size < 0 else self.take(size).decode()

    def string(self, compact: bool = False) -> str:
        value = self.nullable_string(compact)
        if value is None:
            raise ValueError("null where a string must be")
        return value

    def byte_string(self, compact: bool = False) -> bytes:
        return self.take(self.unsigned_varint() - 1 if compact else self.int32())

    def array_size(self, compact: bool = False) -> int:
        """How many elements follow; each takes a byte at least, so a lie is found at once."""
        size = self.unsigned_varint() - 1 if compact else self.int32()
        if not 0 <= size <= len(self.buffer) - self.position:
            raise ValueError(f"array of {size} elements in {len(self.buffer)} bytes")
        return size

    def tagged_fields(self) -> dict[int, bytes]:
        """Tag to content, of a flexible version."""
        return {
            self.unsigned_varint(): self.take(self.unsigned_varint())
            for _ in range(self.unsigned_varint())
        }

    def uuid(self) -> UUID:
        return UUID(bytes=self.take(16))
