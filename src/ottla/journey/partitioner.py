"""Which stock partitioner would have chosen a record's partition. Pure.

A broker receives only the partition, not the reason. But the common partitioners are functions of
the key and the number of partitions, so they can be checked. One key says little: of 3 partitions
each partitioner is right for every third key by chance. So the keys of the same producer near the
record are checked as well: a partitioner is named as the one only if it puts all of them here, and
if that is no coincidence.

    murmur2   Java's default (and kafka-python's); librdkafka's `murmur2` and `murmur2_random`:
              murmur2(key) without its sign bit, modulo the partitions
    crc32     librdkafka's default `consistent_random`, and so confluent-kafka's in any language:
              CRC-32 (as in zlib) of the key, modulo the partitions
    fnv1a     Sarama's default in Go; librdkafka's `fnv1a`
"""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
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


COINCIDENCE: Final = 1_000
"""A partitioner that agrees by chance less often than once in so many cases is believed."""


class Choice(NamedTuple):
    """Why a record is in its partition: the partitioners that match its key, and a sentence.

    `keys`: how many different keys were looked at, its own included; `agreeing`: for how many of
    them each partitioner chooses the partition. `certain`: one partitioner does for all of them,
    and no other, which is no coincidence.
    """

    matches: tuple[str, ...]
    why: str
    keys: int = 0
    agreeing: Mapping[str, int] = MappingProxyType({})
    certain: bool = False


def explain_choice(
    key: bytes | None, partition: int, partition_count: int, near: Iterable[bytes] = ()
) -> Choice:
    """What would have put `key` into `partition` of `partition_count` (1 or more).

    `near`: keys of records of the same producer in the partition.
    """
    if partition_count == 1:
        return Choice((), "the topic has one partition")
    if key is None:
        return Choice((), "no key: the producer chose (sticky or round-robin)")
    keys = {key, *near}
    agreeing = {
        name: sum(_chooses(name, each, partition, partition_count) for each in keys)
        for name in _PARTITIONERS
    }
    matches = tuple(
        name for name in _PARTITIONERS if _chooses(name, key, partition, partition_count)
    )
    always = [name for name in matches if agreeing[name] == len(keys)]
    is_chance = partition_count ** len(keys) < COINCIDENCE
    if always:
        why = _agreed(always, len(keys), is_chance=is_chance)
    elif is_chance:
        whose = "this key" if len(keys) == 1 else f"all {len(keys)} keys near it"
        why = f"{_UNKNOWN}: no default one chooses it for {whose}"
    else:
        best = max(agreeing, key=lambda name: agreeing[name])
        why = f"{_UNKNOWN}: {_named(best)} agrees for {agreeing[best]} of {len(keys)} keys near it"
    return Choice(matches, why, len(keys), agreeing, len(always) == 1 and not is_chance)


_UNKNOWN: Final = (
    "set by the producer, or by a partitioner that Ottla does not know, or there were fewer "
    "partitions"
)


def _agreed(names: Sequence[str], keys: int, *, is_chance: bool) -> str:
    """The partitioners that choose the partition for all keys."""
    *others, last = map(_named, names)
    said = f"{', '.join(others)} and {last} choose it" if others else f"{last} chooses it"
    if keys == 1:
        return f"{said} for this key; there is no other near it to compare"
    return f"{said} for all {keys} keys near it" + (", which may be chance" if is_chance else "")


def _named(name: str) -> str:
    return f"{name} ({WHOSE[name]})"


def _chooses(name: str, key: bytes, partition: int, partition_count: int) -> bool:
    if not key and name == "crc32":
        # consistent_random does not hash an empty key: it chooses at random.
        return False
    return _PARTITIONERS[name](key, partition_count) == partition


def likely_partitions(key: bytes, partition_count: int) -> list[int]:
    """All partitions; first those that a common partitioner would choose for the key."""
    first = [choose(key, partition_count) for choose in _PARTITIONERS.values()]
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
