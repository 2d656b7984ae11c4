"""Producers and readers of a simulated cluster. They write a history in the form of `faults`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from faults.history import Acknowledged, Event, Polled, Sent, Unknown, value_of

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import FETCH
from ottla.records.header import BatchHeader, iterate_headers
from ottla.records.iterate import iterate_records
from ottla.records.record import Record
from simulation.batches import IdempotentBatches
from simulation.connection import RETRY_S, Connections, NoAnswerError

Note = Callable[[Event], None]


class Observer(Protocol):
    """Receives what clients see, immediately, and knows what clients cannot:
    `simulation.invariants`."""

    def acknowledged(
        self, topic: str, index: int, offset: int, crc: int, topic_id: UUID | None = None
    ) -> None:
        """A broker acknowledged a producer's batch at this offset, of the topic with this id if the
        producer named it."""

    def read(self, topic: str, index: int, offset: int, next_offset: int, crc: int) -> None:
        """A consumer fetched this batch."""

    def latest(self, topic: str, index: int, offset: int, epoch: int) -> None:
        """The leader of this epoch returned this latest offset to a client."""

    def epoch_of(self, topic: str, index: int, offset: int, crc: int) -> int:
        """The leader epoch in which this batch was appended at this offset; -1 if unknown."""

    def is_deposed(self, group: str, broker: int) -> bool:
        """Whether this broker was replaced as the group's coordinator, and does not know it."""


LIST_OFFSETS: Final = 2
MAX_IN_BATCH: Final = 4
FETCH_VERSION: Final = 12
MAX_FETCH_BYTES: Final = 1 << 20


class PlainValues(IdempotentBatches[str]):
    """Values that tell their producer and their number, as a history has them."""

    def __init__(
        self,
        number: int,
        partition_key: tuple[str, int],
        addresses: Mapping[int, tuple[str, int]],
        note: Note,
        now_ms: Callable[[], int],
        random: Random,
        observer: Observer,
        topic_id: UUID | None = None,
    ) -> None:
        connections = Connections(f"producer-{number}", addresses)
        super().__init__(connections, partition_key, list(addresses), now_ms, random, topic_id)
        self._number = number
        self._note = note
        self._observer = observer
        self._sent = 0

    def pause_s(self) -> float:
        """Bursts with pauses between them: batches overlap as under load, and a run stays cheap."""
        return self._random.random() * (1.0 if self._random.random() < 0.3 else 0.1)

    def next_values(self) -> list[str]:
        count = self._random.randrange(1, MAX_IN_BATCH + 1)
        values = [value_of(self._number, self._sent + each) for each in range(count)]
        self._sent += count
        for value in values:
            self._note(Sent(self._now_ms(), value, self._partition))
        return values

    def record(self, value: str, now_ms: int) -> Record:
        return Record(0, now_ms, None, value.encode())

    def was_acknowledged(self, values: Sequence[str], offset: int, crc: int) -> None:
        partition_key = self._topic, self._partition
        epoch = self._observer.epoch_of(*partition_key, offset, crc) if offset >= 0 else -1
        for number, value in enumerate(values):
            at = offset + number if offset >= 0 else -1
            self._note(Acknowledged(self._now_ms(), value, self._partition, at, epoch))
        if offset >= 0:
            self._observer.acknowledged(*partition_key, offset, crc, self._topic_id)

    def became_unknown(self, values: Sequence[str], code: ErrorCode) -> None:
        for value in values:
            self._note(Unknown(self._now_ms(), value, self._partition, code.name))


class Reader:
    """Reads one partition from its beginning, without a group, and asks for its latest offset."""

    def __init__(
        self,
        number: int,
        partition_key: tuple[str, int],
        addresses: Mapping[int, tuple[str, int]],
        note: Note,
        now_ms: Callable[[], int],
        observer: Observer,
    ) -> None:
        self.number = number
        self.offset = 0
        self.records: list[tuple[int, str]] = []
        self._topic, self._partition = partition_key
        self._connections = Connections(f"reader-{number}", addresses)
        self._note = note
        self._now_ms = now_ms
        self._observer = observer

    async def run(self) -> None:
        polls = 0
        while True:
            polls += 1
            if not await self.poll():
                await asyncio.sleep(RETRY_S)
            if polls % 5 == 0:
                await self._ask_latest()

    async def poll(self) -> bool:
        """Fetch once and record the result; False if the fetch failed."""
        try:
            code, batches = await fetch(
                self._connections, self._topic, self._partition, self.offset
            )
        except NoAnswerError:
            code, batches = ErrorCode.leader_not_available, []
        if code is ErrorCode.offset_out_of_range:
            # An unclean election truncated what this reader has read: restart from the beginning.
            self.offset = 0
        if code is not ErrorCode.none:
            self._connections.forget_leader(self._topic, self._partition)
            return False
        for header, _ in batches:
            if header.next_offset > self.offset:
                self._observer.read(
                    self._topic,
                    self._partition,
                    header.base_offset,
                    header.next_offset,
                    header.crc,
                )
        found = values_from(batches, self.offset)
        if found:
            self.offset = found[-1][0] + 1
            self.records += found
            epochs = epochs_from(batches, found[0][0])
            now_ms = self._now_ms()
            self._note(Polled(now_ms, self.number, self._partition, tuple(found), epochs))
        return True

    async def _ask_latest(self) -> None:
        build = messages_of(LIST_OFFSETS, 4, "request")
        partition = build.ListOffsetsPartition(partition_index=self._partition, timestamp=-1)
        topic = build.ListOffsetsTopic(name=self._topic, partitions=(partition,))
        request = build.ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=(topic,))
        try:
            leader = await self._connections.leader(self._topic, self._partition)
            answer = await self._connections.ask(leader, request)
        except NoAnswerError:
            self._connections.forget_leader(self._topic, self._partition)
            return
        told = answer.topics[0].partitions[0]
        if ErrorCode(told.error_code) is ErrorCode.none:
            self._observer.latest(self._topic, self._partition, told.offset, told.leader_epoch)


Batches = list[tuple[BatchHeader, list[Record]]]


class Fetched(NamedTuple):
    """The answer to a fetch of one partition."""

    code: ErrorCode
    batches: Batches
    high_watermark: int


async def fetch(
    connections: Connections, topic: str, partition: int, offset: int, max_wait_ms: int = 300
) -> tuple[ErrorCode, Batches]:
    """One fetch of one partition from its leader. Raises NoAnswerError."""
    return (await fetch_some(connections, topic, partition, offset, max_wait_ms))[:2]


async def fetch_some(
    connections: Connections,
    topic: str,
    partition: int,
    offset: int,
    max_wait_ms: int,
    max_bytes: int = MAX_FETCH_BYTES,
) -> Fetched:
    """The same, of so many bytes, or one batch."""
    build = messages_of(FETCH, FETCH_VERSION, "request")
    leader, leader_epoch = await connections.leader_and_epoch(topic, partition)
    wanted = build.FetchPartition(
        partition=partition,
        current_leader_epoch=leader_epoch,
        fetch_offset=offset,
        partition_max_bytes=max_bytes,
    )
    request = build.FetchRequest(
        max_wait=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        session_epoch=-1,
        topics=(build.FetchTopic(topic=topic, partitions=(wanted,)),),
    )
    answer = await connections.ask(leader, request)
    found = answer.responses[0].partitions[0]
    batches = batches_of(bytes(found.records or b""))
    return Fetched(ErrorCode(found.error_code), batches, found.high_watermark)


def batches_of(data: bytes) -> Batches:
    """All complete batches in `data`, with their records."""
    found: Batches = []
    position = 0
    for header in iterate_headers(data):
        batch = data[position : position + header.size_bytes]
        found.append((header, list(iterate_records(batch, header))))
        position += header.size_bytes
    return found


def values_from(
    batches: Iterable[tuple[BatchHeader, list[Record]]], offset: int
) -> list[tuple[int, str]]:
    """(offset, value) of the records at and after `offset`."""
    return [
        (record.offset, (record.value or b"").decode())
        for _, records in batches
        for record in records
        if record.offset >= offset
    ]


def epochs_from(
    batches: Iterable[tuple[BatchHeader, list[Record]]], offset: int
) -> tuple[int, ...]:
    """The leader epochs of the records that `values_from` returns."""
    return tuple(
        header.leader_epoch
        for header, records in batches
        for record in records
        if record.offset >= offset
    )
