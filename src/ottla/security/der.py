"""What certificates are written in (DER: X.690): elements of a tag, a length and a content."""

from __future__ import annotations

from collections.abc import Iterator


def elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each element in a row. Raises IndexError at an end in the middle."""
    position = 0
    while position < len(data):
        tag, size = data[position], data[position + 1]
        position += 2
        if size & 0x80:
            length_bytes = size & 0x7F
            size = int.from_bytes(data[position : position + length_bytes], "big")
            position += length_bytes
        if position + size > len(data):
            raise IndexError(position)
        yield tag, data[position : position + size]
        position += size
