"""The hash by which Java's producer, and most others, choose a key's partition."""

from typing import Final

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_32_BITS: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32-bit hash of Java's `Utils.murmur2`, unsigned."""
    length = len(data)
    result = _SEED ^ length
    whole = length & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _M & _32_BITS
        word = (word ^ word >> 24) * _M & _32_BITS
        result = result * _M & _32_BITS ^ word
    if length > whole:
        result = (result ^ int.from_bytes(data[whole:], "little")) * _M & _32_BITS
    result = (result ^ result >> 13) * _M & _32_BITS
    return result ^ result >> 15


def partition_of_key(key: bytes, count: int) -> int:
    """Which of `count` partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % count
