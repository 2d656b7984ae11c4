"""What a journey says of how a partition was chosen, where it is known how each producer chose."""

from __future__ import annotations

import asyncio
import binascii
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.journey.model.statements import UntrueError

from ottla.journey.partitioner import explain_choice
from ottla.journey.words.partition import format_choice
from ottla.log.config import LogConfig
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.log.verification import NOT_REQUIRED
from ottla.records.build import build_batch
from ottla.records.header import iterate_headers
from ottla.records.record import Record
from ottla.tracing.near_keys import near_keys

KEYS_OF_A_PRODUCER: Final = 60
MAX_UNLUCKY: Final = 2
"""Explicit partitions that look like a partitioner's: once in a thousand by its own count."""
Choose = Callable[[bytes, int], int]


def _int32(number: int) -> int:
    number &= 0xFFFFFFFF
    return number - (1 << 32) if number >= 1 << 31 else number


def javas(key: bytes, count: int) -> int:
    """Utils.toPositive(Utils.murmur2(key)) % count, in Java's signed numbers."""

    def shifted(number: int, by: int) -> int:
        return (number & 0xFFFFFFFF) >> by

    h = _int32(0x9747B28C ^ len(key))
    for at in range(len(key) // 4):
        k = 0
        for byte in reversed(key[4 * at : 4 * at + 4]):
            k = k << 8 | byte
        k = _int32(k * 0x5BD1E995)
        k = _int32(_int32(k ^ shifted(k, 24)) * 0x5BD1E995)
        h = _int32(_int32(h * 0x5BD1E995) ^ k)
    rest = key[len(key) // 4 * 4 :]
    if len(rest) == 3:
        h ^= rest[2] << 16
    if len(rest) >= 2:
        h ^= rest[1] << 8
    if rest:
        h = _int32(_int32(h ^ rest[0]) * 0x5BD1E995)
    h = _int32(_int32(h ^ shifted(h, 13)) * 0x5BD1E995)
    return (_int32(h ^ shifted(h, 15)) & 0x7FFFFFFF) % count


def librdkafkas(key: bytes, count: int) -> int:
    return (binascii.crc32(key) & 0xFFFFFFFF) % count


def saramas(key: bytes, count: int) -> int:
    """Go's FNV-1a as an int32, whose remainder loses its sign."""
    h = 2166136261
    for byte in key:
        h = ((h ^ byte) * 16777619) % (1 << 32)
    signed = _int32(h)
    return abs(signed) % count


KNOWN: Final[dict[str, Choose]] = {"murmur2": javas, "crc32": librdkafkas, "fnv1a": saramas}


class PartitionerLife:
    """Producers with their own ids, of which each chooses in its own way."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = Random(seed)
        self.count = self.random.choice((2, 3, 6, 12))
        self.partition = self.random.randrange(self.count)
        self.log = open_log(str(folder / "t-0"), LogConfig(), OpenFiles(8), now_ms=1000)
        self.how: dict[int, str] = {}
        self.records: list[tuple[int, bytes]] = []
        """By offset: the producer and the key."""
        self.unlucky = 0
        self.believed: set[int] = set()

    def write(self) -> None:
        for producer in range(5):
            self.how[producer] = self.random.choice((*KNOWN, "explicit", "explicit"))
        waiting = [
            (producer, f"{self.random.choice(('order', 'u', ''))}-{number}".encode())
            for producer in self.how
            for number in self.random.sample(range(9999), KEYS_OF_A_PRODUCER)
        ]
        self.random.shuffle(waiting)
        sequences = dict.fromkeys(self.how, 0)
        for producer, key in waiting:
            choose = KNOWN.get(self.how[producer])
            chosen = (
                self.random.randrange(self.count) if choose is None else choose(key, self.count)
            )
            if chosen == self.partition:
                batch = build_batch(
                    [Record(0, 1000, key, b"v")],
                    producer_id=producer,
                    producer_epoch=0,
                    base_sequence=sequences[producer],
                )
                sequences[producer] += 1
                headers = list(iterate_headers(batch))
                self.log.append(batch, headers, leader_epoch=0, now_ms=1000, guard=NOT_REQUIRED)
                self.records.append((producer, key))

    async def ask(self) -> None:
        for offset, (producer, key) in enumerate(self.records):
            near = await near_keys(self.log, offset, producer)
            choice = explain_choice(key, self.partition, self.count, near)
            self._check(producer, key, choice)
        if self.unlucky > MAX_UNLUCKY:
            raise UntrueError(
                f"{self.unlucky} producers with explicit partitions have a partitioner"
            )

    def _check(self, producer: int, key: bytes, choice: Any) -> None:
        how = self.how[producer]
        own = {each for number, each in self.records if number == producer}
        right = {
            name for name, choose in KNOWN.items() if choose(key, self.count) == self.partition
        }
        self._is(set(choice.matches) == right, producer, choice)
        self._is(choice.keys == len(own), producer, choice)
        for name, number in choice.agreeing.items():
            agree = sum(KNOWN[name](each, self.count) == self.partition for each in own)
            self._is(number == agree, producer, choice)
        why = format_choice(choice)
        named = re.findall(r"(\w+) \(\w+'s default\)", why)
        if choice.certain:
            (name,) = named
            if how == "explicit":
                self.unlucky += producer not in self.believed
                self.believed.add(producer)
            else:
                self._is(name == how, producer, choice)
        if how != "explicit":
            self._is(not why.startswith("set by the producer"), producer, choice)
            self._is(how in named, producer, choice)
        if "may be chance" not in why and "choose it for all" in why:
            self._is(len(own) > 1, producer, choice)

    def _is(self, is_true: bool, producer: int, choice: Any) -> None:
        if not is_true:
            raise UntrueError(f"{choice} of producer {producer}, {self.how[producer]}")


def live_partitioner(seed: int, folder: Path) -> None:
    own = folder / str(seed)
    own.mkdir()
    life = PartitionerLife(seed, own)
    life.write()
    asyncio.run(life.ask())
