"""Zig-zag variable-length integers, as in protocol buffers: 7 bits a byte, low ones first."""

from ottla.records.errors import InvalidRecordError


def encode_varint(value: int) -> bytes:
    """`value`, a signed integer of at most 64 bits, in 1 to 10 bytes."""
    rest = (value << 1) ^ (value >> 63)
    if rest < 0x80:
        return bytes((rest,))
    out = bytearray()
    while rest >= 0x80:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def decode_varint(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """The integer at `position` and the position after it.

    Raises InvalidRecordError if it does not end within the buffer or within 10 bytes.
    """
    try:
        byte = buffer[position]
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), position + 1
        result = byte & 0x7F
        for shift in range(7, 70, 7):
            position += 1
            byte = buffer[position]
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (result >> 1) ^ -(result & 1), position + 1
    except IndexError:
        raise InvalidRecordError("a record ends inside an integer") from None
    raise InvalidRecordError("an integer of a record is longer than 10 bytes")
