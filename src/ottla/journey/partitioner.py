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
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from ottla.records.murmur2 import partition_of_key

_32_BITS: Final = 0xFFFFFFFF
_31_BITS: Final = 0x7FFFFFFF

COINCIDENCE: Final = 1_000
"""A partitioner that agrees by chance less often than once in so many cases is believed."""


class Reason(StrEnum):
    """What can be said of a choice; `words.partition` has the sentences."""

    ONE_PARTITION = "one_partition"
    NO_KEY = "no_key"
    AGREED = "agreed"
    """At least one partitioner chooses the partition for all keys."""
    NONE_AGREES = "none_agrees"
    """Set by the producer, or by another partitioner, or there were fewer partitions."""


class Choice(NamedTuple):
    """Why a record is in its partition: the partitioners that match its key.

    `keys`: how many different keys were looked at, its own included; `agreeing`: for how many of
    them each partitioner chooses the partition. `may_be_chance`: so few agree by chance. `certain`:
    one partitioner does for all of them, and no other, which is no coincidence.
    """

    reason: Reason
    matches: tuple[str, ...] = ()
    keys: int = 0
    agreeing: Mapping[str, int] = MappingProxyType({})
    may_be_chance: bool = False

    @property
    def always(self) -> list[str]:
        """The partitioners that choose the partition for all keys."""
        return [name for name in self.matches if self.agreeing[name] == self.keys]

    @property
    def certain(self) -> bool:
        return len(self.always) == 1 and not self.may_be_chance


def explain_choice(
    key: bytes | None, partition: int, partition_count: int, near: Iterable[bytes] = ()
) -> Choice:
    """What would have put `key` into `partition` of `partition_count` (1 or more).

    `near`: keys of records of the same producer in the partition.
    """
    if partition_count == 1:
        return Choice(Reason.ONE_PARTITION)
    if key is None:
        return Choice(Reason.NO_KEY)
    keys = {key, *near}
    agreeing = {
        name: sum(_chooses(name, each, partition, partition_count) for each in keys)
        for name in _PARTITIONERS
    }
    matches = tuple(
        name for name in _PARTITIONERS if _chooses(name, key, partition, partition_count)
    )
    is_chance = partition_count ** len(keys) < COINCIDENCE
    choice = Choice(Reason.AGREED, matches, len(keys), agreeing, is_chance)
    return choice if choice.always else choice._replace(reason=Reason.NONE_AGREES)


def _chooses(name: str, key: bytes, partition: int, partition_count: int) -> bool:
    if not key and name == "crc32":
        # consistent_random does not hash an empty key: it chooses at random.
        return False
    return _PARTITIONERS[name](key, partition_count) == partition


def likely_partitions(
    key: bytes, partition_count: int, seen: Sequence[tuple[bytes, int]] = ()
) -> list[int]:
    """All partitions; first those that a common partitioner would choose for the key.

    `seen`: keys of records with their partitions. The partitioner that chooses most of these as
    they were chosen comes first.
    """
    agreeing = {
        name: sum(_chooses(name, each, at, partition_count) for each, at in seen)
        for name in _PARTITIONERS
    }
    names = sorted(_PARTITIONERS, key=lambda name: -agreeing[name])
    first = [_PARTITIONERS[name](key, partition_count) for name in names]
    return list(dict.fromkeys((*first, *range(partition_count))))


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
    "murmur2": partition_of_key,
    "crc32": lambda key, count: zlib.crc32(key) % count,
    "fnv1a": _fnv1a_choice,
}
