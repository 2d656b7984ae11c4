"""Batches of an idempotent producer to one partition: each is sent until it is acknowledged."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import PRODUCE
from ottla.records.build import build_batch
from ottla.records.header import read_header
from ottla.records.record import Record
from simulation.broker import FIRST_WALL_MS
from simulation.connection import RETRY_S, Connections, NoAnswerError
from simulation.producer import Work

INIT_PRODUCER_ID: Final = 22
PRODUCE_VERSION: Final = 9
IDS_VERSION: Final = 13
"""Of Produce, from which on topics have ids."""
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

T = TypeVar("T")


class IdempotentBatches(Work, Generic[T]):
    """Writes values in order. After a fatal error it goes on with a new producer id."""

    def __init__(
        self,
        connections: Connections,
        partition_key: tuple[str, int],
        brokers: Sequence[int],
        now_ms: Callable[[], int],
        random: Random,
        topic_id: UUID | None = None,
    ) -> None:
        """With `topic_id` it names the topic by that (KIP-516): a topic that was made again under
        the same name gets none of its records."""
        self.acknowledged = 0
        self._connections = connections
        self._topic, self._partition = partition_key
        self._topic_id = topic_id
        self._brokers = brokers
        self._now_ms = now_ms
        self._random = random
        self._producer = (-1, -1)
        self._sequence = 0

    async def begin(self) -> None:
        self._producer = await self._new_producer_id()
        self._sequence = 0

    async def _new_producer_id(self) -> tuple[int, int]:
        """A producer id and its epoch, of any broker."""
        build = messages_of(INIT_PRODUCER_ID, 4, "request")
        request = build.InitProducerIdRequest(transactional_id=None, transaction_timeout=60_000)
        while True:
            broker = self._random.choice(self._brokers)
            try:
                answer = await self._connections.ask(broker, request)
                if answer.error_code == ErrorCode.none:
                    return answer.producer_id, answer.producer_epoch
            except NoAnswerError:
                pass  # try another broker after a pause
            await asyncio.sleep(RETRY_S)

    async def write(self) -> bool:
        await asyncio.sleep(self.pause_s())
        values = self.next_values()
        # Retention would delete records that are too old by the brokers' clock.
        now_ms = FIRST_WALL_MS + self._now_ms()
        producer_id, epoch = self._producer
        batch = build_batch(
            [self.record(each, now_ms) for each in values],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=self._sequence,
        )
        if not await self._deliver(values, batch):
            return False
        self._sequence += len(values)
        return True

    async def _deliver(self, values: Sequence[T], batch: bytes) -> bool:
        """False: a fatal error, the outcome is unknown."""
        while True:
            code, offset = await produce(
                self._connections, self._topic, self._partition, batch, self._topic_id
            )
            if code in (ErrorCode.none, ErrorCode.duplicate_sequence_number):
                self.was_acknowledged(values, offset, read_header(batch).crc)
                self.acknowledged += len(values)
                return True
            if code is not None and code not in RETRIABLE:
                self.became_unknown(values, code)
                return False
            self._connections.forget_leader(self._topic, self._partition)
            await asyncio.sleep(RETRY_S)

    @abstractmethod
    def pause_s(self) -> float:
        """How long to wait before a batch."""

    @abstractmethod
    def next_values(self) -> Sequence[T]:
        """The values of the next batch."""

    @abstractmethod
    def record(self, value: T, now_ms: int) -> Record:
        """The record of a value."""

    @abstractmethod
    def was_acknowledged(self, values: Sequence[T], offset: int, crc: int) -> None:
        """`offset` is -1 where the answer names none."""

    def became_unknown(self, values: Sequence[T], code: ErrorCode) -> None:
        """Whether the batch is stored is not known."""


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
    named: dict[str, Any] = {"name": topic} if by_name else {"topic_id": topic_id}
    of_topic = build.TopicProduceData(**named, partition_data=(data,))
    request = build.ProduceRequest(acks=-1, timeout=1_000, topic_data=(of_topic,))
    try:
        leader = await connections.leader(topic, partition)
        answer = await connections.ask(leader, request)
    except NoAnswerError:
        return None, -1
    told = answer.responses[0].partition_responses[0]
    return ErrorCode(told.error_code), told.base_offset
