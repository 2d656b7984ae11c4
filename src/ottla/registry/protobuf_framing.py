"""What Confluent's framing has for Protobuf after the schema's id: which message of the file it is.

The indexes are a path: of the message in its file, then of the message nested in that one. They
are written as their number and each of them, as zigzag variable-length integers; the path [0] is
the one byte 0. Pure, and without imports of Ottla's: executors get these functions by value.

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html
"""

from __future__ import annotations

MAX_INDEXES = 100


def read_indexes(data: bytes, start: int) -> tuple[tuple[int, ...], int]:
    """Return the indexes at a position in the data, and where the message begins.

    Raises ValueError for data that ends before, and for indexes that no file has.
    """
    count, position = _read_int(data, start)
    if count == 0:
        return (0,), position
    if not 0 < count <= MAX_INDEXES:
        raise ValueError(f"{count} message indexes")
    found = []
    for _ in range(count):
        index, position = _read_int(data, position)
        if index < 0:
            raise ValueError(f"the message index {index}")
        found.append(index)
    return tuple(found), position


def write_indexes(indexes: tuple[int, ...]) -> bytes:
    """Return the bytes of indexes."""
    if indexes == (0,):
        return b"\x00"
    return b"".join(_write_int(one) for one in (len(indexes), *indexes))


def _read_int(data: bytes, position: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        if position >= len(data):
            raise ValueError("no message indexes")
        byte = data[position]
        found |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), position
        shift += 7
        if shift > 28:
            raise ValueError("a message index of more than 32 bits")


def _write_int(number: int) -> bytes:
    rest, out = number << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)
