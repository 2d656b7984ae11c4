"""Writes the markers of prepared transactions to their partitions, until each has its marker.

The markers for one broker travel together: while a request is under way, those that come meanwhile
wait for the next one (Kafka's TransactionMarkerChannelManager). A marker that a broker refuses for
now is sent again after a pause, to the leader of then; a partition that does not exist any more
needs none. When the last one is written, the coordinator completes the transaction.

Nothing here is stored. A coordinator that is loaded asks for the markers of everything that is
prepared, and its scan for timeouts asks again: so what is lost here comes back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from ottla.network.peer import PeerError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import WRITE_TXN_MARKERS
from ottla.runtime.background import Background
from ottla.runtime.slices import parts
from ottla.shards.step import ProducerEpoch
from ottla.transactions.marker_outcome import MarkerOutcome, outcome_of
from ottla.transactions.step import MarkersDue
from ottla.transactions.stored import TopicPartition

logger = logging.getLogger("ottla.transactions")

VERSION: Final = 2
MAX_MARKERS: Final = 1_000
"""Transactions of one request."""
MAX_PARTITIONS: Final = 2_000
"""Of one request, or of one transaction in one go: at a few microseconds each for a request, its
answer and what follows, they hold the event loop for about 10 ms. A transaction may have 100,000.
"""
FIRST_PAUSE_MS: Final = 20
MAX_PAUSE_MS: Final = 1_000
NO_LEADER: Final = -1

Key = tuple[str, ProducerEpoch]


class Written(NamedTuple):
    """Partitions of one transaction that have their marker now."""

    transactional_id: str
    producer: ProducerEpoch
    partitions: frozenset[TopicPartition]


class Transactions(NamedTuple):
    """The sender's view of the coordinator."""

    partition_for: Callable[[str], int]
    """The partition of the state topic that holds a transactional id."""
    epoch: Callable[[int], int | None]
    """The leader epoch under which this broker coordinates that partition; None: it does not."""
    written: Callable[[int, Sequence[Written]], Awaitable[None]]
    """Completes transactions of one partition whose last marker is written. Raises ApiError."""


class _Sending:
    """One transaction whose markers are being written."""

    __slots__ = ("due", "epoch", "index", "left", "pause_ms")

    def __init__(self, due: MarkersDue, index: int, epoch: int) -> None:
        self.due = due
        self.index = index
        self.epoch = epoch
        self.left = set(due.partitions)
        self.pause_ms = FIRST_PAUSE_MS

    @property
    def key(self) -> Key:
        return self.due.transactional_id, self.due.producer


_Queue = dict[Key, tuple[_Sending, dict[TopicPartition, None]]]
"""What waits for the next requests to one broker, in the order in which it came."""


class MarkerSender:
    """For the event loop's thread only."""

    def __init__(
        self,
        transactions: Transactions,
        leader_of: Callable[[TopicPartition], int | None],
        ask: Callable[[int, Any], Awaitable[Any]],
    ) -> None:
        """`leader_of` returns a partition's leader, NO_LEADER, or None if it does not exist. `ask`
        sends a request to a broker, maybe this one, and raises PeerError."""
        self._transactions = transactions
        self._leader_of = leader_of
        self._ask = ask
        self._sending: dict[Key, _Sending] = {}
        self._queues: dict[int, _Queue] = {}
        """By broker: the next request to it; a broker is here while it is being written to."""
        self._background = Background(logger, "writing transaction markers")

    def __len__(self) -> int:
        """The transactions whose markers are not all written."""
        return len(self._sending)

    def send(self, due: MarkersDue) -> None:
        """Writes the markers of a prepared transaction, unless that is under way."""
        index = self._transactions.partition_for(due.transactional_id)
        epoch = self._transactions.epoch(index)
        if epoch is None:
            return
        known = self._sending.get((due.transactional_id, due.producer))
        if known is not None and known.epoch == epoch:
            return
        sending = _Sending(due, index, epoch)
        self._sending[sending.key] = sending
        self._begin(sending, due.partitions)

    def close(self) -> None:
        """Stops writing; the next coordinator goes on."""
        self._background.cancel()
        self._sending.clear()
        self._queues.clear()

    def _is_current(self, sending: _Sending) -> bool:
        """Whether this broker still coordinates the transaction, in the same epoch."""
        if self._sending.get(sending.key) is not sending:
            return False
        if self._transactions.epoch(sending.index) == sending.epoch:
            return True
        self._forget(sending)
        return False

    def _forget(self, sending: _Sending) -> None:
        if self._sending.get(sending.key) is sending:
            del self._sending[sending.key]

    # To the leaders.

    def _begin(self, sending: _Sending, partitions: Collection[TopicPartition]) -> None:
        if len(partitions) <= MAX_PARTITIONS:
            self._enqueue(sending, sorted(partitions))
        else:
            self._background.spawn(self._begin_many(sending, partitions))

    async def _begin_many(self, sending: _Sending, partitions: Collection[TopicPartition]) -> None:
        for part in parts(sorted(partitions), MAX_PARTITIONS):
            if self._is_current(sending):
                self._enqueue(sending, part)
                await asyncio.sleep(0)

    def _enqueue(self, sending: _Sending, partitions: Sequence[TopicPartition]) -> None:
        """The partitions are sorted: the same order in every run of a simulation."""
        gone, later = set(), set()
        for partition in partitions:
            leader = self._leader_of(partition)
            if leader is None:
                gone.add(partition)
            elif leader == NO_LEADER:
                later.add(partition)
            else:
                self._enqueue_at(leader, sending, partition)
        if gone:
            logger.info(
                "%s: %d partitions are deleted and need no marker",
                sending.due.transactional_id,
                len(gone),
            )
        if later:
            self._background.spawn(self._again(sending, later))
        if gone or not sending.left:
            self._background.spawn(self._written([(sending, gone)]))

    def _enqueue_at(self, leader: int, sending: _Sending, partition: TopicPartition) -> None:
        queue = self._queues.get(leader)
        if queue is None:
            queue = self._queues[leader] = {}
            self._background.spawn(self._write_to(leader))
        waiting = queue.get(sending.key)
        if waiting is None or waiting[0] is not sending:
            queue[sending.key] = (sending, {partition: None})
        else:
            waiting[1][partition] = None

    async def _again(self, sending: _Sending, partitions: set[TopicPartition]) -> None:
        pause_ms = sending.pause_ms
        sending.pause_ms = min(pause_ms * 2, MAX_PAUSE_MS)
        await asyncio.sleep(pause_ms / 1000)
        if self._is_current(sending):
            self._begin(sending, partitions)

    async def _write_to(self, broker_id: int) -> None:
        """Sends one request after the other until nothing waits for this broker."""
        batch: list[tuple[_Sending, set[TopicPartition]]] = []
        try:
            while queue := self._queues.get(broker_id):
                batch = [entry for entry in _first(queue) if self._is_current(entry[0])]
                if batch:
                    await self._write(broker_id, batch)
                batch = []
        finally:
            # Empty, but for a failure: then the next scan asks for these again.
            for sending, _ in (*batch, *self._queues.pop(broker_id, {}).values()):
                self._forget(sending)

    async def _write(
        self, broker_id: int, batch: Sequence[tuple[_Sending, set[TopicPartition]]]
    ) -> None:
        try:
            response = await self._ask(broker_id, _request(batch))
        except PeerError as error:
            logger.info("transaction markers for broker %d: %s", broker_id, error)
            for sending, partitions in batch:
                self._background.spawn(self._again(sending, partitions))
            return
        errors = {
            (marker.producer_id, topic.name, each.partition_index): each.error_code
            for marker in response.markers
            for topic in marker.topics
            for each in topic.partitions
        }
        done = [
            (sending, self._sort_out(sending, partitions, errors)) for sending, partitions in batch
        ]
        await self._written([(sending, partitions) for sending, partitions in done if partitions])

    def _sort_out(
        self,
        sending: _Sending,
        partitions: set[TopicPartition],
        errors: dict[tuple[int, str, int], ErrorCode],
    ) -> set[TopicPartition]:
        """Returns the partitions that have their marker, and arranges for the others."""
        written, again = set(), set()
        for partition in partitions:
            error = errors.get(
                (sending.due.producer.producer_id, *partition), ErrorCode.unknown_server_error
            )
            match outcome_of(error):
                case MarkerOutcome.WRITTEN:
                    written.add(partition)
                case MarkerOutcome.RETRY:
                    again.add(partition)
                case MarkerOutcome.GIVE_UP:
                    logger.warning(
                        "%s: no marker for %s-%d: %s; the coordinator asks again with its next "
                        "scan for timeouts",
                        sending.due.transactional_id,
                        *partition,
                        error.name,
                    )
                    self._forget(sending)
        if again and self._is_current(sending):
            self._background.spawn(self._again(sending, again))
        return written

    # To the coordinator.

    async def _written(self, done: Sequence[tuple[_Sending, set[TopicPartition]]]) -> None:
        by_index: dict[int, list[tuple[_Sending, set[TopicPartition]]]] = {}
        for sending, partitions in done:
            sending.left -= partitions
            by_index.setdefault(sending.index, []).append((sending, partitions))
        for index, entries in by_index.items():
            await self._complete(index, entries)

    async def _complete(
        self, index: int, entries: Sequence[tuple[_Sending, set[TopicPartition]]]
    ) -> None:
        written = [Written(*sending.key, frozenset(partitions)) for sending, partitions in entries]
        try:
            await self._transactions.written(index, written)
        except ApiError as error:
            logger.info("transaction markers are written, but not their end: %s", error)
            if error.code is ErrorCode.coordinator_not_available:
                # Too few replicas of the state partition are in sync.
                self._background.spawn(self._complete_later(index, entries))
                return
        for sending, _ in entries:
            if not sending.left:
                self._forget(sending)

    async def _complete_later(
        self, index: int, entries: Sequence[tuple[_Sending, set[TopicPartition]]]
    ) -> None:
        await asyncio.sleep(MAX_PAUSE_MS / 1000)
        current = [entry for entry in entries if self._is_current(entry[0])]
        if current:
            await self._complete(index, current)


def _first(queue: _Queue) -> list[tuple[_Sending, set[TopicPartition]]]:
    """Takes what fits into one request. A transaction with too many partitions is split."""
    batch: list[tuple[_Sending, set[TopicPartition]]] = []
    left = MAX_PARTITIONS
    while queue and left and len(batch) < MAX_MARKERS:
        key = next(iter(queue))
        sending, partitions = queue[key]
        if len(partitions) <= left:
            del queue[key]
        else:
            some = list(islice(partitions, left))
            for each in some:
                del partitions[each]
            partitions = dict.fromkeys(some)
        left -= len(partitions)
        batch.append((sending, set(partitions)))
    return batch


def _request(batch: Sequence[tuple[_Sending, set[TopicPartition]]]) -> Any:
    build = messages_of(WRITE_TXN_MARKERS, VERSION, "request")
    return build.WriteTxnMarkersRequest(
        markers=tuple(_marker(build, sending, partitions) for sending, partitions in batch)
    )


def _marker(build: Any, sending: _Sending, partitions: set[TopicPartition]) -> Any:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    return build.WritableTxnMarker(
        producer_id=sending.due.producer.producer_id,
        producer_epoch=sending.due.producer.epoch,
        transaction_result=sending.due.is_commit,
        topics=tuple(
            build.WritableTxnMarkerTopic(name=topic, partition_indexes=tuple(indexes))
            for topic, indexes in topics.items()
        ),
        coordinator_epoch=sending.epoch,
        transaction_version=sending.due.client_version,
    )
