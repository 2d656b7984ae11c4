"""A transactional producer of transaction.version 2 (KIP-890), request by request: Produce adds its
partition to the transaction, and each EndTxn answers the epoch of the next one.
"""

from __future__ import annotations

import time
from typing import Any, Final

from tests.system.wire import Wire

from ottla.protocol.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.record import Record

PRODUCE: Final = 0
FIND_COORDINATOR: Final = 10
INIT_PRODUCER_ID: Final = 22
END_TXN: Final = 26
WITHIN_S: Final = 60
TRANSACTION: Final = 1
"""The key type of FindCoordinator."""
AGAIN: Final = (
    ErrorCode.concurrent_transactions,
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
)


class WireProducer:
    """Of a single broker, which coordinates and leads everything."""

    def __init__(self, wire: Wire, transactional_id: str) -> None:
        self.wire = wire
        self.transactional_id = transactional_id
        self.producer_id = self.epoch = -1
        self._sequences: dict[str, int] = {}

    def init(self) -> ErrorCode:
        """InitProducerId, again while the transaction before is ended."""
        build = self.wire.request(INIT_PRODUCER_ID, 5)
        request = build.InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout=60_000,
            producer_id=-1,
            producer_epoch=-1,
        )
        until = time.monotonic() + WITHIN_S
        while (answer := self.wire.ask(request)).error_code in AGAIN:
            assert time.monotonic() < until, answer
            if answer.error_code is ErrorCode.not_coordinator:
                self.create_state_topic()
            time.sleep(0.01)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()
        code: ErrorCode = answer.error_code
        return code

    def create_state_topic(self) -> None:
        """FindCoordinator creates `__transaction_state`."""
        build = self.wire.request(FIND_COORDINATOR, 4)
        keys = (self.transactional_id,)
        self.wire.ask(build.FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=keys))

    def produce(self, topic: str, value: bytes) -> ErrorCode:
        """Produce 12 to partition 0."""
        batch = build_batch(
            [Record(0, int(time.time() * 1000), None, value, ())],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self._sequences.get(topic, 0),
            is_transactional=True,
        )
        build = self.wire.request(PRODUCE, 12)
        partition = build.PartitionProduceData(index=0, records=batch)
        data = build.TopicProduceData(name=topic, partition_data=(partition,))
        request = build.ProduceRequest(
            transactional_id=self.transactional_id, acks=-1, timeout=10_000, topic_data=(data,)
        )
        until = time.monotonic() + WITHIN_S
        while True:
            code: ErrorCode = self.wire.ask(request).responses[0].partition_responses[0].error_code
            if code is not ErrorCode.concurrent_transactions or time.monotonic() > until:
                break
        self._sequences[topic] = self._sequences.get(topic, 0) + 1
        return code

    def end(self, *, commits: bool) -> ErrorCode:
        """EndTxn 5."""
        build = self.wire.request(END_TXN, 5)
        answer: Any = self.wire.ask(
            build.EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                committed=commits,
            )
        )
        code: ErrorCode = answer.error_code
        if code is ErrorCode.none:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequences.clear()
        return code
