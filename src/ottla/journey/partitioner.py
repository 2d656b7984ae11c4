"""Which stock partitioner would have chosen a record's partition. Pure.

A broker receives only the partition, not the reason. But the common partitioners are functions of
the key and the number of partitions, so they can be checked. With few partitions, several may
match.

    murmur2   Java's default (and kafka-python's); librdkafka's `murmur2` and `murmur2_random`:
              murmur2(key) without its sign bit, modulo the partitions
    crc32     librdkafka's default `consistent_random`, and so confluent-kafka's in any language:
              CRC-32 (as in zlib) of the key, modulo the partitions
    fnv1a     Sarama's default in Go; librdkafka's `fnv1a`
"""

import zlib
from collections.abc import Callable
from typing import Final, NamedTuple

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_32_BITS: Final = 0xFFFFFFFF
_31_BITS: Final = 0x7FFFFFFF

WHOSE: Final = {
    "murmur2": "Java's default",
    "crc32": "librdkafka's default",
    "fnv1a": "Sarama's default",
}


class Choice(NamedTuple):
    """Why a record is in its partition: the partitioners that match, and a sentence."""

    matches: tuple[str, ...]
    why: str


def explain_choice(key: bytes | None, partition: int, partition_count: int) -> Choice:
    """What would have put `key` into `partition` of `partition_count` (1 or more)."""
    if partition_count == 1:
        return Choice((), "the topic has one partition")
    if key is None:
        return Choice((), "no key: the producer chose (sticky or round-robin)")
    matches = tuple(
        name for name in ("murmur2", "crc32") if _of(name, key, partition_count) == partition
    )
    if not matches and _of("fnv1a", key, partition_count) == partition:
        matches = ("fnv1a",)
    if not key and "crc32" in matches:
        # consistent_random does not hash an empty key: it chooses at random.
        matches = tuple(name for name in matches if name != "crc32")
    named = [f"{name} ({WHOSE[name]})" for name in matches]
    if len(matches) == 1:
        return Choice(matches, f"{named[0]} of its key")
    if matches:
        return Choice(matches, f"{' and '.join(named)} of its key agree")
    return Choice(
        (),
        "no default partitioner chooses it for this key: the producer set the partition or used "
        "its own partitioner, or there were fewer partitions at that time",
    )


def likely_partitions(key: bytes, partition_count: int) -> list[int]:
    """All partitions; first those that a common partitioner would choose for the key."""
    first = [_of(name, key, partition_count) for name in _PARTITIONERS]
    return list(dict.fromkeys((*first, *range(partition_count))))


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


def fnv1a(data: bytes) -> int:
    """The 32-bit FNV-1a hash, unsigned."""
    result = 0x811C9DC5
    for byte in data:
        result = (result ^ byte) * 0x01000193 & _32_BITS
    return result


def _fnv1a_choice(key: bytes, count: int) -> int:
    """Sarama's choice: the hash is a signed number, and a negative remainder loses its sign."""
    hashed = fnv1a(key)
    return hashed % count if hashed <= _31_BITS else (2**32 - hashed) % count


_PARTITIONERS: Final[dict[str, Callable[[bytes, int], int]]] = {
    "murmur2": lambda key, count: (murmur2(key) & _31_BITS) % count,
    "crc32": lambda key, count: zlib.crc32(key) % count,
    "fnv1a": _fnv1a_choice,
}


def _of(name: str, key: bytes, partition_count: int) -> int:
    return _PARTITIONERS[name](key, partition_count)
