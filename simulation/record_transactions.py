"""Transactions that write records to several partitions.

A producer has two batches of a partition under way at a time. Most transactions also commit their
number as an offset, as those that consume, transform and produce (KIP-447); some commit one where
another offset expires meanwhile. After an error that aborts the transaction the producer goes on
with the next epoch (KIP-360); after one that fences it, it begins again unless another one has its
id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, NamedTuple

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import ADD_PARTITIONS_TO_TXN, PRODUCE
from ottla.records.build import build_batch
from ottla.records.record import Record
from simulation.batches import RETRIABLE
from simulation.broker import FIRST_WALL_MS
from simulation.connection import RETRY_S, TRANSACTION, Connections, NoAnswerError, RefusedError
from simulation.coordinator_client import (
    REQUEST_TIMEOUT_MS,
    ask_coordinator,
)
from simulation.pace import Pace
from simulation.record_ledger import PartitionKey, RecordLedger, Value
from simulation.transactional_offsets import Transaction, TransactionalOffsets
from simulation.transactions import Transactions

TOPIC_IDS: Final = 13
MAX_TRIES: Final = 80
MAX_IN_BATCH: Final = 3
MAX_UNDER_WAY: Final = 2
LATER: Final = 0.3
"""How often the second batch comes later than the first: their verifications may differ."""
MAX_LATER_S: Final = 0.2
COMMITS_OFFSET: Final = 0.6
"""How often a transaction commits an offset."""
BESIDE_EXPIRY: Final = 0.05
"""How often it commits one in a group whose other offset expires while the transaction is open."""
BESIDE_PLAIN: Final = 0.1
"""How often it commits one before another client commits the same partition's, plainly."""
RETENTION_MS: Final = 200
LONG_MS: Final = 600_000
EXPIRES_WITHIN_S: Final = 0.3
"""After the time at which offsets are looked through: once a second in a full run."""
NOT_THERE: Final = (
    None,
    ErrorCode.not_leader_or_follower,
    ErrorCode.unknown_topic_or_partition,
)
"""After these the next leader does not know that the batch is to come. After others the
verification has its sequence as the lowest one (KIP-890)."""
MAY_BE_STORED: Final = (
    None,
    ErrorCode.request_timed_out,
    ErrorCode.not_enough_replicas_after_append,
)
"""After these a batch may be in the leader's log."""
FENCED: Final = frozenset(
    {
        ErrorCode.producer_fenced,
        ErrorCode.invalid_producer_epoch,
        ErrorCode.invalid_producer_id_mapping,
    }
)


class Versions(NamedTuple):
    """The versions of a client's requests."""

    produce: int
    end_txn: int
    offsets: int
    """TxnOffsetCommit."""

    @property
    def adds_partitions(self) -> bool:
        """The client adds them itself; from Produce 12 on the brokers do (KIP-890)."""
        return self.produce < 12


class _Batch(NamedTuple):
    """A batch and the values in it."""

    values: tuple[Value, ...]
    data: bytes


class RecordTransactions(Transactions):
    """The transactions of one instance, with records and offsets."""

    def __init__(
        self,
        connections: Connections,
        ledger: RecordLedger,
        partitions: Callable[[], Sequence[PartitionKey]],
        leader_epoch: Callable[[PartitionKey], int],
        is_behind: Callable[[int], bool],
        now_ms: Callable[[], int],
        random: Random,
        versions: Versions,
        offsets: TransactionalOffsets,
        pace: Pace,
    ) -> None:
        """`partitions` are written to, `leader_epoch` returns that of the elected leader,
        `is_behind` whether a broker has yet to learn of an election.
        Transactions' offsets go to `offsets`.
        """
        super().__init__(connections, ledger, now_ms, random, versions.end_txn, ledger.timeout_ms)
        self._offsets = offsets
        self._ledger = ledger
        self._partitions = partitions
        self._leader_epoch = leader_epoch
        self._is_behind = is_behind
        self._versions = versions
        self._pace = pace
        self._sequences: dict[PartitionKey, int] = {}
        self._added: set[PartitionKey] = set()
        self._offsets_of: dict[Value, int] = {}
        """By the first record of each batch: the offset in the newest answer."""
        self._written_in: dict[PartitionKey, int] = {}
        """The leader epoch of the last answer with success."""
        self._is_unsure = False
        """A batch of the transaction has no answer: it may arrive later."""

    def former(self) -> tuple[int, int]:
        return self._producer

    def changed(self) -> None:
        self._sequences.clear()

    def refused(self, error: RefusedError) -> None:
        if error.code in FENCED:
            self._producer = (-1, -1)

    async def transact(self) -> bool:
        number = self._ledger.begun(self._now_ms())
        self._added.clear()
        self._is_unsure = False
        try:
            for _ in range(self._random.randrange(1, 4)):
                await self._write(number)
                slow = self._random.random() < 0.02
                pause_s = (
                    2 * self._ledger.timeout_ms / 1000 if slow else self._random.random() * 0.1
                )
                await asyncio.sleep(pause_s)
            await self._commit_offsets(number)
            await self.end(number, is_commit=self._random.random() < 0.75)
        except RefusedError as error:
            if error.code in FENCED:
                self._ledger.refused(self._token, number, self._now_ms(), error.code.name)
                raise
            # Abortable, as clients see it.
            await self.end(number, is_commit=False)
            # Below version 2 the epoch stays, and a batch of this transaction may still arrive.
            return not (self._is_unsure and self._versions.adds_partitions)
        return True

    async def _commit_offsets(self, number: int) -> None:
        """Commit the transaction's number as the offset of its groups."""
        transaction = self.transaction
        if self._random.random() < COMMITS_OFFSET:
            await self._commit_offset(transaction, self._ledger.group, number)
            self._ledger.offset_accepted(number)
        if self._random.random() < BESIDE_EXPIRY:
            group = self._ledger.own_group(number)
            await self._offsets.commit_until(group, 0, RETENTION_MS)
            await self._commit_offset(transaction, group, number)
            self._ledger.own_offset_accepted(number)
            await asyncio.sleep(EXPIRES_WITHIN_S + self._pace.s(1.0))
        if self._random.random() < BESIDE_PLAIN:
            # The later record counts, whenever the transaction ends.
            await self._commit_offset(transaction, self._ledger.mixed_group, number)
            await self._offsets.commit_until(self._ledger.mixed_group, 0, LONG_MS)

    async def _commit_offset(self, transaction: Transaction, group: str, number: int) -> None:
        await self._offsets.commit(transaction, group, number, self._versions.offsets)

    # Records.

    async def _write(self, number: int) -> None:
        """Write some records of the transaction to one partition."""
        partition_key = self._random.choice(self._partitions())
        if self._versions.adds_partitions and partition_key not in self._added:
            await self._add(partition_key)
        first = self._sequences.get(partition_key, 0)
        batches = []
        for _ in range(self._random.randrange(1, MAX_UNDER_WAY + 1)):
            count = self._random.randrange(1, MAX_IN_BATCH + 1)
            values = tuple(self._ledger.sending(number) for _ in range(count))
            batches.append(self._batch(values, first))
            first += count
        self._is_unsure = True
        producer_id, _ = self._producer
        # A leader that does not know the producer accepts any first sequence, as Kafka's does, and
        # so the second batch if the first one came before the leader was elected. In version 2 it
        # accepts only 0 (KIP-890).
        may_overtake = self._versions.adds_partitions and self._ledger.is_new(
            producer_id, partition_key
        )
        await self._deliver(number, partition_key, batches, may_overtake=may_overtake)
        self._is_unsure = False
        self._ledger.written(producer_id, partition_key)
        self._sequences[partition_key] = first

    def _batch(self, values: tuple[Value, ...], sequence: int) -> _Batch:
        now_ms = FIRST_WALL_MS + self._now_ms()
        producer_id, epoch = self._producer
        data = build_batch(
            [Record(0, now_ms, None, value.encode()) for value in values],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        return _Batch(values, data)

    async def _deliver(
        self, number: int, partition_key: PartitionKey, batches: list[_Batch], *, may_overtake: bool
    ) -> None:
        """Send batches until each is acknowledged. Raises RefusedError.

        `may_overtake`: the leader may accept the second batch before the first.
        """
        has_overtaken = may_be_stored = False
        first_epoch = self._leader_epoch(partition_key)
        code = None
        later_s = self._random.random() * MAX_LATER_S if self._random.random() < LATER else 0.0
        for _ in range(MAX_TRIES):
            sending = [
                self._send(partition_key, each, turn * later_s) for turn, each in enumerate(batches)
            ]
            # Before the answers: one may come after the next leader is elected.
            sent_in = self._leader_epoch(partition_key)
            codes = await asyncio.gather(*sending)
            later_s, first = 0.0, batches[0]
            while codes and codes[0] in (ErrorCode.none, ErrorCode.duplicate_sequence_number):
                codes.pop(0)
                values = batches.pop(0).values
                self._written_in[partition_key] = sent_in
                offset = self._offsets_of.pop(values[0], -1)
                for turn, value in enumerate(values):
                    self._ledger.acknowledged(
                        value, partition_key, offset + turn if offset >= 0 else -1
                    )
            if not codes:
                return
            code = codes[0]
            is_out_of_order = code is ErrorCode.out_of_order_sequence_number
            if may_overtake and code in NOT_THERE and ErrorCode.none in codes:
                has_overtaken = True
            # A log that was opened again, or cut, has the producer from its snapshot, which has the
            # last batch alone, as Kafka's: the one before it is no duplicate.
            is_forgotten = (
                may_be_stored
                and any(each in (ErrorCode.none, *MAY_BE_STORED) for each in codes[1:])
                and self._leader_epoch(partition_key) > first_epoch
            )
            is_forgotten |= self._ledger.may_be_forgotten(partition_key) and (
                self._leader_epoch(partition_key) > self._written_in.get(partition_key, -1)
            )
            if is_out_of_order and (has_overtaken or is_forgotten):
                raise RefusedError(ErrorCode.out_of_order_sequence_number)
            may_be_stored = may_be_stored or code in MAY_BE_STORED
            if is_out_of_order and batches[0] is first:
                self._ledger.out_of_order(first.values[0])
            if code is ErrorCode.producer_fenced:
                self._ledger.fenced_by_produce(number)
            # Each request looks for the leader, so a later one may find it earlier.
            if not is_out_of_order and not self._may_retry(code):
                assert code is not None
                raise RefusedError(code)
            self._connections.forget_leader(*partition_key)
            await asyncio.sleep(RETRY_S)
        raise RefusedError(code or ErrorCode.request_timed_out)

    def _may_retry(self, code: ErrorCode | None) -> bool:
        return code is None or code in RETRIABLE or code is ErrorCode.concurrent_transactions

    async def _send(
        self, partition_key: PartitionKey, batch: _Batch, later_s: float
    ) -> ErrorCode | None:
        """One request's error code; None without an answer."""
        await asyncio.sleep(later_s)
        build = messages_of(PRODUCE, self._versions.produce, "request")
        topic, partition = partition_key
        data = build.PartitionProduceData(index=partition, records=batch.data)
        request = build.ProduceRequest(
            transactional_id=self._ledger.name,
            acks=-1,
            timeout=1_000,
            topic_data=(build.TopicProduceData(name=topic, partition_data=(data,)),),
        )
        try:
            leader = await self._connections.leader(topic, partition)
            was_behind = self._is_behind(leader)
            answer = await self._connections.ask(leader, request, REQUEST_TIMEOUT_MS)
        except NoAnswerError:
            return None
        told = answer.responses[0].partition_responses[0]
        code = ErrorCode(told.error_code)
        if code is ErrorCode.none:
            self._offsets_of[batch.values[0]] = told.base_offset
        if code in FENCED and (was_behind or self._is_behind(leader)):
            # The coordinator that it asked may have been replaced, perhaps itself, and has an old
            # epoch of the producer. Clients abort (KIP-588).
            return ErrorCode.transaction_abortable
        return code

    # The coordinator.

    async def _add(self, partition_key: PartitionKey) -> None:
        build = messages_of(ADD_PARTITIONS_TO_TXN, 3, "request")
        topic, partition = partition_key
        producer_id, epoch = self._producer
        request = build.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._ledger.name,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=(
                build.AddPartitionsToTxnTopic(name=topic, partitions=(partition,)),
            ),
        )
        await ask_coordinator(
            self._connections,
            TRANSACTION,
            self._ledger.name,
            request,
            lambda answer: (
                answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            ),
        )
        self._added.add(partition_key)

    async def ask_end(self, request: Any) -> Any:
        """Asks again where no answer comes, as clients do."""
        for _ in range(MAX_TRIES):
            try:
                return await self._of_transaction(request)
            except NoAnswerError:
                await asyncio.sleep(RETRY_S)
        raise NoAnswerError("the transaction's end is unknown")
