"""Producers and readers of a simulated cluster. They write a history in the form of `faults`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from faults.history import Acknowledged, Event, Polled, Sent, Unknown, value_of

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import FETCH, PRODUCE
from ottla.records.build import build_batch
from ottla.records.header import BatchHeader, iterate_headers, read_header
from ottla.records.iterate import iterate_records
from ottla.records.record import Record
from simulation.broker import FIRST_WALL_MS
from simulation.connection import Connections, NoAnswerError

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
INIT_PRODUCER_ID: Final = 22
RETRY_S: Final = 0.1
MAX_IN_BATCH: Final = 4
PRODUCE_VERSION: Final = 9
IDS_VERSION: Final = 13
"""Of Produce, from which on topics have ids."""
FETCH_VERSION: Final = 12
MAX_FETCH_BYTES: Final = 1 << 20
# The record may be in the log: the producer retries the same batch. Other errors end the producer.
RETRIABLE: Final = frozenset(
    {
        ErrorCode.not_leader_or_follower,
        ErrorCode.leader_not_available,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
        ErrorCode.request_timed_out,
        ErrorCode.not_enough_replicas,
        ErrorCode.not_enough_replicas_after_append,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
        ErrorCode.not_controller,
        ErrorCode.kafka_storage_error,
        ErrorCode.unknown_leader_epoch,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.offset_not_available,
    }
)


class Producer:
    """Sends values to one partition in order, and retries each batch until it is acknowledged."""

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
        """With `topic_id` it names the topic by that (KIP-516): a topic that was made again under
        the same name gets none of its records."""
        self.number = number
        self._topic_id = topic_id
        self.acknowledged = 0
        self.stopping = False
        self.has_stopped = False
        self._topic, self._partition = partition_key
        self._connections = Connections(f"producer-{number}", addresses)
        self._brokers = list(addresses)
        self._note = note
        self._now_ms = now_ms
        self._random = random
        self._observer = observer
        self._sequence = 0

    async def run(self) -> None:
        """Run until `stopping`; after a fatal error continue with a new producer id."""
        while not self.stopping:
            producer_id, epoch = await init_producer_id(
                self._connections, lambda: self._random.choice(self._brokers)
            )
            sequence = 0
            while not self.stopping:
                await asyncio.sleep(self._pause_s())
                count = self._random.randrange(1, MAX_IN_BATCH + 1)
                values = [value_of(self.number, self._sequence + each) for each in range(count)]
                self._sequence += count
                for value in values:
                    self._note(Sent(self._now_ms(), value, self._partition))
                batch = self._batch(values, producer_id, epoch, sequence)
                if not await self._deliver(values, batch):
                    break
                sequence += count
        self.has_stopped = True

    def _pause_s(self) -> float:
        """Bursts with pauses between them: batches overlap as under load, and a run stays cheap."""
        return self._random.random() * (1.0 if self._random.random() < 0.3 else 0.1)

    def _batch(self, values: list[str], producer_id: int, epoch: int, sequence: int) -> bytes:
        # Retention would delete records that are too old by the brokers' clock.
        now_ms = FIRST_WALL_MS + self._now_ms()
        records = [Record(0, now_ms, None, value.encode()) for value in values]
        return build_batch(
            records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
        )

    async def _deliver(self, values: list[str], batch: bytes) -> bool:
        """Send one batch until it is acknowledged. False: a fatal error, the outcome is unknown."""
        while True:
            code, offset = await produce(
                self._connections, self._topic, self._partition, batch, self._topic_id
            )
            if code is ErrorCode.none or code is ErrorCode.duplicate_sequence_number:
                self._acknowledged(values, offset, read_header(batch).crc)
                return True
            if code is not None and code not in RETRIABLE:
                for value in values:
                    self._note(Unknown(self._now_ms(), value, self._partition, code.name))
                return False
            self._connections.forget_leader(self._topic, self._partition)
            await asyncio.sleep(RETRY_S)

    def _acknowledged(self, values: list[str], offset: int, crc: int) -> None:
        """`offset` is -1 where the answer names none."""
        partition_key = self._topic, self._partition
        epoch = self._observer.epoch_of(*partition_key, offset, crc) if offset >= 0 else -1
        for number, value in enumerate(values):
            at = offset + number if offset >= 0 else -1
            self._note(Acknowledged(self._now_ms(), value, self._partition, at, epoch))
        self.acknowledged += len(values)
        if offset >= 0:
            self._observer.acknowledged(*partition_key, offset, crc, self._topic_id)


async def init_producer_id(connections: Connections, choose: Callable[[], int]) -> tuple[int, int]:
    """A new producer id, and its epoch, of the brokers that `choose` returns."""
    build = messages_of(INIT_PRODUCER_ID, 4, "request")
    request = build.InitProducerIdRequest(transactional_id=None, transaction_timeout=60_000)
    while True:
        broker = choose()
        try:
            answer = await connections.ask(broker, request)
            if answer.error_code == ErrorCode.none:
                return answer.producer_id, answer.producer_epoch
        except NoAnswerError:
            pass  # try another broker after a pause
        await asyncio.sleep(RETRY_S)


async def produce(
    connections: Connections,
    topic: str,
    partition: int,
    batch: bytes,
    topic_id: UUID | None = None,
) -> tuple[ErrorCode | None, int]:
    """Send a batch to its leader. The error code, None without an answer, and the offset."""
    by_name = topic_id is None
    build = messages_of(PRODUCE, PRODUCE_VERSION if by_name else IDS_VERSION, "request")
    data = build.PartitionProduceData(index=partition, records=batch)
    named = {"name": topic} if by_name else {"topic_id": topic_id}
    of_topic = build.TopicProduceData(**named, partition_data=(data,))
    request = build.ProduceRequest(acks=-1, timeout=1_000, topic_data=(of_topic,))
    try:
        leader = await connections.leader(topic, partition)
        answer = await connections.ask(leader, request)
    except NoAnswerError:
        return None, -1
    told = answer.responses[0].partition_responses[0]
    return ErrorCode(told.error_code), told.base_offset


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
