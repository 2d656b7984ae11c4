"""Clients of a compacted partition: a producer with few keys, readers, and their ledger.

One reader follows the log; others begin at its start now and then, as consumers do that rebuild a
table. A fetch is small, so that it begins anywhere in the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Final

from ottla.protocol.errors import ErrorCode
from ottla.records.record import Record
from simulation.batches import IdempotentBatches
from simulation.clients import fetch_some
from simulation.cluster import KEYED, Cluster
from simulation.connection import RETRY_S, Connections, NoAnswerError
from simulation.keyed_ledger import Keyed, KeyedLedger
from simulation.process import Process
from simulation.producer import Producer
from simulation.violation import Violation

KEYS: Final = 20
"""Some are written often and some hardly ever, so whole batches vanish between others."""
MAX_IN_BATCH: Final = 3
TOMBSTONES: Final = 0.15
MAX_FETCH_BYTES: Final = (1, 200, 500)
READS_WITHIN_MS: Final = 10_000


class KeyedClients:
    """Starts the clients, and judges what they saw."""

    def __init__(self, cluster: Cluster) -> None:
        self.ledger = KeyedLedger(f"{KEYED}-0")
        self._cluster = cluster
        self._random = Random(f"{cluster.seed} keyed")
        self._producing = Process("10.0.9.1")
        self._producer = Producer(_KeyedRecords(cluster, self.ledger, self._random))
        self._readers: list[KeyedReader] = []

    def start(self) -> None:
        loop = self._cluster.loop
        loop.start_in(self._producing, self._producer.run)
        loop.start_in(Process("10.0.9.2"), self._new_reader("the follower").run)
        loop.start_in(Process("10.0.9.3"), self._read_again)

    def stop(self) -> None:
        """The producer ends; see `has_stopped`."""
        self._producer.stopping = True

    @property
    def has_stopped(self) -> bool:
        return self._producer.has_stopped

    @property
    def acknowledged(self) -> int:
        """How many records."""
        return self._producer.acknowledged

    def pause(self, *, is_paused: bool) -> None:
        """Stop the producer where it is, and let it go on."""
        self._producing.is_paused = is_paused

    async def judge(self) -> None:
        """All is at rest: read everything once more. Raises Violation for the first anomaly that
        lost records do not explain."""
        if self._cluster.invariants.forgiven(KEYED):
            return
        follower, last = self._readers[0], self._new_reader("the last reader")
        follower.is_stopping = True
        while not follower.has_stopped:
            await asyncio.sleep(RETRY_S)
        for reader in (follower, last):
            end_offset = await reader.read_to_the_end(self._cluster.loop.now_ms + READS_WITHIN_MS)
            self.ledger.read_all(reader.last, end_offset, reader.name)
        for what in self.ledger.anomalies:
            raise Violation(what)

    # Readers.

    def _new_reader(self, name: str) -> KeyedReader:
        reader = KeyedReader(name, self._cluster, self.ledger, self._random)
        self._readers.append(reader)
        return reader

    async def _read_again(self) -> None:
        while True:
            await asyncio.sleep(self._cluster.pace.s(1.0) * self._random.random())
            reader = self._new_reader("another reader")
            for _ in range(self._random.randrange(3, 30)):
                if not await reader.poll():
                    await asyncio.sleep(RETRY_S)


class _KeyedRecords(IdempotentBatches[Keyed]):
    """Records of few keys, some of them tombstones."""

    def __init__(self, cluster: Cluster, ledger: KeyedLedger, random: Random) -> None:
        connections = Connections("keyed producer", cluster.addresses)
        super().__init__(connections, (KEYED, 0), list(cluster.addresses), cluster.now_ms, random)
        self._ledger = ledger

    def pause_s(self) -> float:
        return self._random.random() * (0.3 if self._random.random() < 0.1 else 0.03)

    def next_values(self) -> list[Keyed]:
        return [
            self._ledger.sending(
                f"key-{int(KEYS * self._random.random() ** 3)}",
                is_tombstone=self._random.random() < TOMBSTONES,
            )
            for _ in range(self._random.randrange(1, MAX_IN_BATCH + 1))
        ]

    def record(self, value: Keyed, now_ms: int) -> Record:
        number = str(value.number).encode()
        return Record(
            0,
            now_ms,
            value.key.encode(),
            None if value.is_tombstone else number,
            (("number", number),),
        )

    def was_acknowledged(self, values: Sequence[Keyed], offset: int, crc: int) -> None:
        for turn, each in enumerate(values if offset >= 0 else ()):
            self._ledger.acknowledged(each, offset + turn)


class KeyedReader:
    """Reads the partition from its beginning."""

    def __init__(self, name: str, cluster: Cluster, ledger: KeyedLedger, random: Random) -> None:
        self.name = name
        self.offset = 0
        self.is_stopping = False
        self.has_stopped = False
        self.last: dict[str, tuple[int, Keyed]] = {}
        """By key: the newest record, and its offset."""
        self._high_watermark = -1
        self._cluster = cluster
        self._ledger = ledger
        self._random = random
        self._connections = Connections(name, cluster.addresses)

    async def run(self) -> None:
        while not self.is_stopping:
            if not await self.poll():
                await asyncio.sleep(RETRY_S)
        self.has_stopped = True

    async def poll(self, max_wait_ms: int = 300) -> bool:
        """Fetch once; False if the fetch failed."""
        offset = self.offset
        try:
            answer = await fetch_some(
                self._connections,
                KEYED,
                0,
                offset,
                max_wait_ms,
                self._random.choice(MAX_FETCH_BYTES),
            )
        except NoAnswerError:
            self._connections.forget_leader(KEYED, 0)
            return False
        if answer.code is not ErrorCode.none:
            self._connections.forget_leader(KEYED, 0)
            if answer.code is ErrorCode.offset_out_of_range:
                # Only the loss of all in-sync replicas removes what was read.
                self.offset = 0
            return False
        self._high_watermark = answer.high_watermark
        for header, records in answer.batches:
            # The first one may begin before the offset of the fetch.
            is_again = self.offset != offset and header.base_offset < self.offset
            if is_again or header.next_offset <= self.offset:
                self._ledger.wrong_batch(offset, header.base_offset, header.last_offset)
                return False
            self._ledger.gaps += header.base_offset > self.offset
            for record in records:
                if record.offset >= offset:
                    self._take(record)
            self.offset = header.next_offset
        return True

    def _take(self, record: Record) -> None:
        number = int(dict(record.headers)["number"] or b"")
        key = (record.key or b"").decode()
        found = self._ledger.read(number, key, record.offset, is_tombstone=record.value is None)
        if found is not None:
            self.last[key] = record.offset, found

    async def read_to_the_end(self, until_ms: int) -> int:
        """Returns the high watermark. Raises Violation if the reader does not get there."""
        while not await self.poll(0) or self.offset < self._high_watermark:
            if self._cluster.loop.now_ms > until_ms:
                raise Violation(
                    f"{KEYED}-0: {self.name} stays at {self.offset} of {self._high_watermark}"
                )
        return self._high_watermark
