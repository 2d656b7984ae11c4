"""Producers and consumers of a simulated cluster. They write a history as `faults` has it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from faults.history import Acknowledged, Event, Polled, Sent, Unknown, value_of

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import FETCH, PRODUCE
from ottla.records.build import build_batch
from ottla.records.header import iterate_headers
from ottla.records.iterate import iterate_records
from ottla.records.record import Record
from simulation.virtual.connection import Connections, NoAnswerError

Note = Callable[[Event], None]

INIT_PRODUCER_ID: Final = 22
RETRY_S: Final = 0.1
MAX_IN_BATCH: Final = 4
PRODUCE_VERSION: Final = 9
FETCH_VERSION: Final = 12
MAX_FETCH_BYTES: Final = 1 << 20
# The record is in the log, or may be: the same batch is sent again. All others end the producer.
RETRIABLE: Final = frozenset(
    {
        ErrorCode.not_leader_or_follower,
        ErrorCode.leader_not_available,
        ErrorCode.unknown_topic_or_partition,
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
    """Sends values of one partition, in order, each batch again until it is acknowledged."""

    def __init__(
        self,
        number: int,
        place: tuple[str, int],
        addresses: Mapping[int, tuple[str, int]],
        note: Note,
        now_ms: Callable[[], int],
        random: Random,
    ) -> None:
        self.number = number
        self.acknowledged = 0
        self.stopping = False
        self._topic, self._partition = place
        self._connections = Connections(f"producer-{number}", addresses)
        self._brokers = list(addresses)
        self._note = note
        self._now_ms = now_ms
        self._random = random
        self._sequence = 0

    async def run(self) -> None:
        """Until `stopping`; a producer that is refused for good begins again with a new id."""
        while not self.stopping:
            producer_id, epoch = await self._init_producer_id()
            sequence = 0
            while not self.stopping:
                await asyncio.sleep(self._random.random() * 0.2)
                count = self._random.randrange(1, MAX_IN_BATCH + 1)
                values = [value_of(self.number, self._sequence + each) for each in range(count)]
                self._sequence += count
                for value in values:
                    self._note(Sent(self._now_ms(), value, self._partition))
                batch = self._batch(values, producer_id, epoch, sequence)
                if not await self._deliver(values, batch):
                    break
                sequence += count

    def _batch(self, values: list[str], producer_id: int, epoch: int, sequence: int) -> bytes:
        records = [Record(0, self._now_ms(), None, value.encode()) for value in values]
        return build_batch(
            records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
        )

    async def _init_producer_id(self) -> tuple[int, int]:
        build = messages_of(INIT_PRODUCER_ID, 4, "request")
        request = build.InitProducerIdRequest(transactional_id=None, transaction_timeout=60_000)
        while True:
            broker = self._random.choice(self._brokers)
            try:
                answer = await self._connections.ask(broker, request)
                if answer.error_code == ErrorCode.none:
                    return answer.producer_id, answer.producer_epoch
            except NoAnswerError:
                pass  # asks another broker, after a pause
            await asyncio.sleep(RETRY_S)

    async def _deliver(self, values: list[str], batch: bytes) -> bool:
        """Send one batch until it is acknowledged. False: refused for good, its fate is unknown."""
        while True:
            code, offset = await self._try(batch)
            if code is ErrorCode.none or code is ErrorCode.duplicate_sequence_number:
                for number, value in enumerate(values):
                    at = offset + number if offset >= 0 else -1
                    self._note(Acknowledged(self._now_ms(), value, self._partition, at))
                self.acknowledged += len(values)
                return True
            if code is not None and code not in RETRIABLE:
                for value in values:
                    self._note(Unknown(self._now_ms(), value, self._partition, code.name))
                return False
            self._connections.forget_leader(self._topic, self._partition)
            await asyncio.sleep(RETRY_S)

    async def _try(self, batch: bytes) -> tuple[ErrorCode | None, int]:
        build = messages_of(PRODUCE, PRODUCE_VERSION, "request")
        data = build.PartitionProduceData(index=self._partition, records=batch)
        topic = build.TopicProduceData(name=self._topic, partition_data=(data,))
        request = build.ProduceRequest(acks=-1, timeout=1_000, topic_data=(topic,))
        try:
            leader = await self._connections.leader(self._topic, self._partition)
            answer = await self._connections.ask(leader, request)
        except NoAnswerError:
            return None, -1
        partition = answer.responses[0].partition_responses[0]
        return ErrorCode(partition.error_code), partition.base_offset


class Reader:
    """Reads one partition from its beginning on, by itself."""

    def __init__(
        self,
        number: int,
        place: tuple[str, int],
        addresses: Mapping[int, tuple[str, int]],
        note: Note,
        now_ms: Callable[[], int],
    ) -> None:
        self.number = number
        self.offset = 0
        self.records: list[tuple[int, str]] = []
        self._topic, self._partition = place
        self._connections = Connections(f"reader-{number}", addresses)
        self._note = note
        self._now_ms = now_ms

    async def run(self) -> None:
        while True:
            if not await self.poll():
                await asyncio.sleep(RETRY_S)

    async def poll(self) -> bool:
        """Read once; False when that failed. Notes and keeps what came."""
        try:
            leader = await self._connections.leader(self._topic, self._partition)
            answer = await self._connections.ask(leader, self._request())
        except NoAnswerError:
            self._connections.forget_leader(self._topic, self._partition)
            return False
        partition = answer.responses[0].partitions[0]
        code = ErrorCode(partition.error_code)
        if code is not ErrorCode.none:
            self._connections.forget_leader(self._topic, self._partition)
            return False
        self._take(partition.records)
        return True

    def _request(self) -> Any:
        build = messages_of(FETCH, FETCH_VERSION, "request")
        partition = build.FetchPartition(
            partition=self._partition,
            fetch_offset=self.offset,
            partition_max_bytes=MAX_FETCH_BYTES,
        )
        topic = build.FetchTopic(topic=self._topic, partitions=(partition,))
        return build.FetchRequest(
            max_wait=300, min_bytes=1, max_bytes=MAX_FETCH_BYTES, session_epoch=-1, topics=(topic,)
        )

    def _take(self, data: Any) -> None:
        found = [
            (record.offset, (record.value or b"").decode())
            for record in records_of(bytes(data or b""))
            if record.offset >= self.offset
        ]
        if found:
            self.offset = found[-1][0] + 1
            self.records += found
            self._note(Polled(self._now_ms(), self.number, self._partition, tuple(found)))


def records_of(data: bytes) -> list[Record]:
    """All records of the whole batches in `data`."""
    found: list[Record] = []
    position = 0
    for header in iterate_headers(data):
        found += iterate_records(data[position : position + header.size_bytes], header)
        position += header.size_bytes
    return found
