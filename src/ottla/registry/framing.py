"""Confluent's framing of a key or value. Pure.

    byte 0       the magic byte, 0
    bytes 1-4    the schema's id, big endian
    then         the data in the schema's format

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html
"""

from __future__ import annotations

from typing import Final

MAGIC: Final = b"\x00"
HEAD_BYTES: Final = 5


def head(schema_id: int) -> bytes:
    """Return the bytes in front of data with this schema."""
    assert 0 <= schema_id < 2**32
    return MAGIC + schema_id.to_bytes(4, "big")


def id_of(data: bytes) -> int | None:
    """Return the schema's id, None where the data does not begin as framed data does."""
    if len(data) < HEAD_BYTES or data[:1] != MAGIC:
        return None
    return int.from_bytes(data[1:HEAD_BYTES], "big")
