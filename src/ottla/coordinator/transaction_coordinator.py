"""The transaction coordinator of this broker: finds a request's shard, and waits for its decision.

A transactional id belongs to one partition of `__transaction_state`, and is coordinated by that
partition's leader.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.marker_sender import Written
from ottla.coordinator.shard_kind import ShardKind
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import TRANSACTIONS_TOPIC
from ottla.runtime.background import Background
from ottla.shards.encoding import fits_string
from ottla.shards.partitioning import partition_for
from ottla.shards.step import ProducerEpoch
from ottla.transactions.record_format import decode, encode
from ottla.transactions.requests import (
    AddRequest,
    DescribedTransaction,
    EndRequest,
    InitRequest,
    ListFilter,
    ProducerResult,
)
from ottla.transactions.settings import TransactionSettings
from ottla.transactions.shard import TransactionShard
from ottla.transactions.step import MarkersDue, ProducerIdNeeded, Step
from ottla.transactions.stored import TopicPartition, TransactionValue

logger = logging.getLogger("ottla.transactions")

FLEXIBLE_RECORDS_VERSION: Final = 1
"""The first transaction.version whose records have tagged fields (KIP-890)."""
MAX_PRODUCER_IDS: Final = 1_000
"""That one scan takes for transactions in the last epoch of their producer id."""

T = TypeVar("T")


def transaction_kind(
    settings: TransactionSettings,
    cluster_version: Callable[[], int],
    send_markers: Callable[[MarkersDue], None],
) -> ShardKind[TransactionShard]:
    """Transactions as a kind of coordinator: `__transaction_state`.

    `cluster_version` is the finalized transaction.version.
    """
    return ShardKind(
        topic=TRANSACTIONS_TOPIC,
        settings=settings,
        new_shard=TransactionShard,
        encode=lambda record: encode(record, int(cluster_version() >= FLEXIBLE_RECORDS_VERSION)),
        decode=decode,
        commit_timeout_ms=settings.append_timeout_ms,
        newest_suffices=True,
        # There may be markers to write, and open transactions to abort.
        loads_when_elected=True,
        on_committed=send_markers,
    )


class TransactionCoordinator:
    """The transactional ids of every partition of `__transaction_state` that this broker leads.

    `partition_count` is how many the topic has (transaction.state.log.num.partitions before it
    exists).
    """

    def __init__(
        self,
        runtime: CoordinatorRuntime[TransactionShard],
        partition_count: Callable[[], int],
        next_producer_id: Callable[[], Awaitable[int]],
        cluster_version: Callable[[], int],
    ) -> None:
        """`next_producer_id` raises ApiError if no id can be reserved now."""
        self._runtime = runtime
        self._settings: TransactionSettings = runtime.kind.settings
        self._partition_count = partition_count
        self._next_producer_id = next_producer_id
        self._cluster_version = cluster_version
        self._background = Background(logger, "the scan of transactions")

    def start(self) -> None:
        """Begins the periodic scans for timed-out transactions and expired transactional ids."""
        self._background.keep(self._scan_timeouts)
        self._background.keep(self._scan_expired)

    def close(self) -> None:
        """Stops them. The owner of the runtime closes the runtime."""
        self._background.cancel()

    def partition_for(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` that holds this transactional id."""
        return partition_for(transactional_id, self._partition_count())

    def epoch(self, index: int) -> int | None:
        """The leader epoch under which this broker coordinates a partition, if it does."""
        return self._runtime.epoch(index)

    async def _decide(
        self,
        transactional_id: str,
        decide: Callable[[TransactionShard, int | None, Step], T],
    ) -> T:
        """Decides, with a new producer id if the decision needs one. Raises ApiError."""
        if not transactional_id or not fits_string(transactional_id):
            raise ApiError(ErrorCode.invalid_request)
        index = self.partition_for(transactional_id)
        try:
            return await self._runtime.decide(index, lambda shard, step: decide(shard, None, step))
        except ProducerIdNeeded:
            new_id = await self._next_producer_id()
        return await self._runtime.decide(index, lambda shard, step: decide(shard, new_id, step))

    # Producers' requests. All raise ApiError.

    async def initialize(
        self, transactional_id: str, timeout_ms: int, expected: ProducerEpoch | None
    ) -> ProducerResult:
        """InitProducerId; `expected` is what the producer has, if it goes on after an error."""
        request = InitRequest(transactional_id, timeout_ms, expected, self._cluster_version())
        return await self._decide(
            transactional_id, lambda shard, new_id, step: shard.initialize(request, new_id, step)
        )

    async def add(self, request: AddRequest) -> ErrorCode:
        """AddPartitionsToTxn and AddOffsetsToTxn."""
        return await self._decide(
            request.transactional_id, lambda shard, _, step: shard.add(request, step)
        )

    async def verify(
        self,
        transactional_id: str,
        producer: ProducerEpoch,
        partitions: frozenset[TopicPartition],
    ) -> dict[TopicPartition, ErrorCode]:
        """AddPartitionsToTxn that only verifies: each partition's error."""
        return await self._decide(
            transactional_id,
            lambda shard, _, step: shard.verify(transactional_id, producer, partitions),
        )

    async def end(self, request: EndRequest) -> ProducerResult:
        """EndTxn."""
        return await self._decide(
            request.transactional_id, lambda shard, new_id, step: shard.end(request, new_id, step)
        )

    # Markers.

    async def written(self, index: int, written: Sequence[Written]) -> None:
        """Completes transactions of one partition whose last marker is written."""

        def decide(shard: TransactionShard, step: Step) -> None:
            for transactional_id, producer, partitions in written:
                shard.written(transactional_id, producer, partitions, step)

        await self._runtime.decide_appended(index, decide)

    # Administration.

    async def describe(self, transactional_id: str) -> DescribedTransaction:
        """DescribeTransactions of one id; raises ApiError."""
        return await self._decide(
            transactional_id, lambda shard, _, step: shard.describe(transactional_id)
        )

    async def list(self, wanted: ListFilter) -> list[tuple[str, TransactionValue]]:
        """ListTransactions over all led partitions; raises ApiError."""
        found = await self._runtime.decide_in_each(lambda shard, step: shard.list(wanted, step))
        return [each for some in found for each in some]

    # Time.

    async def abort_timed_out(self) -> None:
        """Aborts the open transactions of this broker whose timeout is over."""
        for index in self._runtime.led_indexes():
            try:
                await self._abort_timed_out(index)
            except ApiError as error:
                logger.info("%s-%d: no scan for timeouts: %s", TRANSACTIONS_TOPIC, index, error)
            await asyncio.sleep(0)

    async def _abort_timed_out(self, index: int) -> None:
        version = self._cluster_version()
        new_ids: list[int] = []
        needed = await self._runtime.decide_appended(
            index, lambda shard, step: shard.abort_timed_out(version, new_ids, step)
        )
        if needed:
            new_ids += [
                await self._next_producer_id() for _ in range(min(needed, MAX_PRODUCER_IDS))
            ]
            await self._runtime.decide_appended(
                index, lambda shard, step: shard.abort_timed_out(version, new_ids, step)
            )

    async def remove_expired(self) -> None:
        """Forgets the transactional ids of this broker that nobody uses any more."""
        for index in self._runtime.led_indexes():
            await self._runtime.write(index, lambda shard, step: shard.remove_expired(step))
            await asyncio.sleep(0)

    async def _scan_timeouts(self) -> None:
        while True:
            await asyncio.sleep(self._settings.abort_interval_ms / 1000)
            await self.abort_timed_out()

    async def _scan_expired(self) -> None:
        while True:
            await asyncio.sleep(self._settings.remove_expired_interval_ms / 1000)
            await self.remove_expired()
