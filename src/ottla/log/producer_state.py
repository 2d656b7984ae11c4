"""The state of a partition's producers: idempotence, and open transactions.

Modelled on Kafka's ProducerStateManager, ProducerStateEntry and ProducerAppendInfo (KIP-98,
KIP-360, KIP-890):

- It keeps the last 5 batches of a producer, so that a duplicate gets its old offset.
- The next batch must continue the sequence, which wraps from 2^31-1 to 0: else
  OUT_OF_ORDER_SEQUENCE_NUMBER.
- An older producer epoch is INVALID_PRODUCER_EPOCH; a new one begins at sequence 0.
- An unknown producer (expired, or its records deleted) may begin at any sequence. Since KIP-360,
  UNKNOWN_PRODUCER_ID is no longer returned.
- It keeps at most MAX_PRODUCERS, but for those in open transactions: beyond that, producers that
  are silent expire early. Kafka keeps any number for producer.id.expiration.ms, and a producer id
  costs a client one small batch: a million of them take 500 MB, and half a second for the snapshot
  at each new segment. A producer is silent for longer than it retries a batch
  (delivery.timeout.ms) unless 80 new ones a second come for two minutes.
- A transaction's first batch here needs the guard of its verification; see `verification`.
- A marker of an older producer epoch is INVALID_PRODUCER_EPOCH, one of a deposed coordinator is
  TRANSACTION_COORDINATOR_FENCED. In transactions of version 2 a marker's epoch is larger than that
  of the transaction's batches, so one of the same epoch is late (KIP-890, part 2), unless it is the
  last marker sent again (KAFKA-19999).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from ottla.log.verification import Guard, Verifications
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.control import ControlType, EndTransactionMarker
from ottla.records.header import LARGEST_SEQUENCE, TRANSACTIONAL_BIT, BatchHeader

BATCHES_REMEMBERED: Final = 5
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
LARGEST_OFFSET: Final = 2**63 - 1
LATE_MS: Final = 5 * 60 * 1000
"""Markers may take that long (ProducerStateManager.LATE_TRANSACTION_BUFFER_MS)."""
LARGEST_EPOCH: Final = 2**15 - 1
VERSION_2: Final = 2
"""The transaction version in which every transaction has an epoch of its own (KIP-890)."""

MAX_PRODUCERS: Final = 10_000
CANDIDATES: Final = 1_024

_NONE: Final[dict[int, int]] = {}
"""Of all partitions without transactions, and never changed: a dict for each takes 80 bytes."""


class BatchTrace(NamedTuple):
    """What is kept of one batch."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & LARGEST_SEQUENCE


@dataclass(slots=True)
class Producer:
    """One producer of this partition. `transaction_start_offset` is -1 outside a transaction."""

    producer_id: int
    producer_epoch: int = NO_EPOCH
    coordinator_epoch: int = -1
    last_timestamp_ms: int = -1
    transaction_start_offset: int = -1
    batches: list[BatchTrace] = field(default_factory=list)
    """The last ones. A deque would take 760 bytes for any number of them, and most producers have
    one: a list that is made with it takes 64."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """The last record's offset; -1 if only a marker is known."""
        return self.batches[-1].last_offset if self.batches else -1

    def is_in_transaction(self, producer_epoch: int) -> bool:
        """Whether its transaction of this epoch is open here. One of an older epoch may have ended:
        its marker is on its way."""
        return self.transaction_start_offset >= 0 and producer_epoch == self.producer_epoch

    def find_duplicate(self, header: BatchHeader) -> BatchTrace | None:
        """The earlier batch with exactly these sequences, if this is a duplicate."""
        if header.producer_epoch != self.producer_epoch:
            return None
        last = header.last_sequence
        for batch in self.batches:
            if batch.last_sequence == last and batch.first_sequence == header.base_sequence:
                return batch
        return None


class CompletedTransaction(NamedTuple):
    """A transaction whose marker, at `last_offset`, was appended."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
    last_stable_offset: int
    """The first offset of the oldest transaction that was still open then, or the one after the
    marker."""


def last_offset_of(producer: Producer) -> int:
    """For sorting."""
    return producer.last_offset


class ProducerState:
    """All producers of one partition. `end_offset` is where the batches seen so far end.

    A snapshot does not hold completed transactions, as in Kafka: those that ended before it count
    as replicated after a restart.
    """

    __slots__ = ("_completed", "_ongoing", "end_offset", "producers", "verifications")

    def __init__(self, end_offset: int = 0, producers: Iterable[Producer] = ()) -> None:
        self.end_offset = end_offset
        self.producers = {producer.producer_id: producer for producer in producers}
        self.verifications = Verifications()
        self._ongoing: dict[int, int] = _NONE
        """First offset to producer id, of the open transactions, oldest first: offsets only
        grow."""
        if self.producers:
            self._ongoing = dict(
                sorted(
                    (producer.transaction_start_offset, producer.producer_id)
                    for producer in self.producers.values()
                    if producer.transaction_start_offset >= 0
                )
            )
        self._completed: dict[int, int] = _NONE
        """First offset to marker's offset, of the transactions that `high_watermark_moved` has not
        removed."""

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """The first offset of the oldest transaction that is open, or whose marker is not below the
        high watermark. None where there is no such transaction.

        A completed transaction is unstable until its marker is committed: another leader may not
        have the marker (ProducerStateManager.firstUnstableOffset).
        """
        if self._completed:
            self.high_watermark_moved(high_watermark)
        if not self._completed:
            return next(iter(self._ongoing), None)
        return min(min(self._completed), next(iter(self._ongoing), LARGEST_OFFSET))

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Removes the completed transactions whose markers are committed now.

        The high watermark must not go back while this object is in use: a cut of the log makes a
        new one.
        """
        if self._completed:
            self._completed = {
                first_offset: marker_offset
                for first_offset, marker_offset in self._completed.items()
                if marker_offset >= high_watermark
            }

    def begin_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, *, version_2: bool, now_ms: int
    ) -> Guard | None:
        """Begin to verify the producer's transaction; None if it is ongoing here, so that it needs
        no verification. Raises ApiError INVALID_PRODUCER_EPOCH.
        """
        producer = self.producers.get(producer_id)
        if producer is not None:
            if producer_epoch < producer.producer_epoch:
                raise _old_epoch(producer, producer_epoch)
            if producer.is_in_transaction(producer_epoch):
                return None
        return self.verifications.begin(
            producer_id, producer_epoch, sequence, version_2=version_2, now_ms=now_ms
        )

    def check(self, header: BatchHeader, guard: Guard | None = None) -> BatchTrace | None:
        """Whether a client's batch may be appended. Changes nothing.

        `guard` is that of `begin_verification`. Returns the earlier batch if this is a duplicate,
        None if it should be appended. Raises ApiError INVALID_PRODUCER_EPOCH,
        OUT_OF_ORDER_SEQUENCE_NUMBER or INVALID_TXN_STATE.
        """
        producer = self.producers.get(header.producer_id)
        if producer is not None:
            duplicate = producer.find_duplicate(header)
            if duplicate is not None:
                return duplicate
        self._check(producer, header, guard)
        if self.verifications.by_producer and (producer is None or not producer.batches):
            self.verifications.check_sequence(header)
        if producer is not None and header.base_sequence != NO_SEQUENCE:
            _check_sequence(producer, header)
        return None

    def check_own(self, header: BatchHeader, guard: Guard | None) -> None:
        """The same for a coordinator's batch, which has no sequence."""
        self._check(self.producers.get(header.producer_id), header, guard)

    def _check(self, producer: Producer | None, header: BatchHeader, guard: Guard | None) -> None:
        is_transactional = header.attributes & TRANSACTIONAL_BIT
        if producer is not None:
            if header.producer_epoch < producer.producer_epoch:
                raise _old_epoch(producer, header.producer_epoch)
            if producer.transaction_start_offset >= 0 and not is_transactional:
                raise ApiError(
                    ErrorCode.invalid_txn_state,
                    f"producer {header.producer_id} writes outside its open transaction",
                )
        if is_transactional and (
            producer is None or not producer.is_in_transaction(header.producer_epoch)
        ):
            self.verifications.check_guard(header.producer_id, guard)

    def check_marker(
        self, header: BatchHeader, marker: EndTransactionMarker, transaction_version: int
    ) -> None:
        """Whether a coordinator's marker may be appended. Changes nothing.

        Raises ApiError INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.
        """
        producer = self.producers.get(header.producer_id)
        if producer is None:
            return
        epoch = header.producer_epoch
        if transaction_version < VERSION_2:
            if epoch < producer.producer_epoch:
                raise _old_epoch(producer, epoch)
        elif epoch <= producer.producer_epoch:
            # The marker ended the transaction before, but its answer was lost. With the largest
            # epoch an open transaction may have begun in the marker's own epoch.
            is_repeated = epoch == producer.producer_epoch and (
                producer.transaction_start_offset < 0 or epoch == LARGEST_EPOCH
            )
            if not is_repeated:
                raise ApiError(
                    ErrorCode.invalid_producer_epoch,
                    f"a marker of producer {header.producer_id} has epoch {epoch};"
                    f" its latest here is {producer.producer_epoch}",
                )
        if producer.coordinator_epoch > marker.coordinator_epoch:
            raise ApiError(
                ErrorCode.transaction_coordinator_fenced,
                f"a marker of coordinator epoch {marker.coordinator_epoch};"
                f" the latest here is {producer.coordinator_epoch}",
            )

    def append(self, header: BatchHeader) -> None:
        """Record a data batch that is in the log; `header` has its final offsets."""
        producer = self.producers.get(header.producer_id)
        if producer is None:
            producer = self._add(header.producer_id)
        if producer.producer_epoch != header.producer_epoch:
            producer.batches.clear()
            producer.producer_epoch = header.producer_epoch
        last_offset = header.base_offset + header.last_offset_delta
        trace = BatchTrace(
            header.last_sequence, last_offset, header.last_offset_delta, header.max_timestamp
        )
        batches = producer.batches
        if not batches:
            producer.batches = [trace]
        else:
            if len(batches) >= BATCHES_REMEMBERED:
                del batches[0]
            batches.append(trace)
        producer.last_timestamp_ms = header.max_timestamp
        if header.attributes & TRANSACTIONAL_BIT:
            if producer.transaction_start_offset < 0:
                producer.transaction_start_offset = header.base_offset
                if self._ongoing is _NONE:
                    self._ongoing = {}
                self._ongoing[header.base_offset] = header.producer_id
            self.verifications.appended(header.producer_id)
        self.end_offset = last_offset + 1

    def _add(self, producer_id: int) -> Producer:
        if len(self.producers) >= MAX_PRODUCERS:
            self._evict_oldest()
        producer = self.producers[producer_id] = Producer(producer_id)
        return producer

    def _evict_oldest(self) -> None:
        """Forgets half of the CANDIDATES that were added longest ago: those that were silent for
        longest, except in open transactions. The others count as added now.
        """
        producers = self.producers
        candidates = list(islice(producers.values(), CANDIDATES))
        silent = [each for each in candidates if each.transaction_start_offset < 0]
        silent.sort(key=last_offset_of)
        for each in candidates:
            del producers[each.producer_id]
        forgotten = {each.producer_id for each in silent[: CANDIDATES // 2]}
        for each in candidates:
            if each.producer_id not in forgotten:
                producers[each.producer_id] = each

    def append_marker(
        self, header: BatchHeader, marker: EndTransactionMarker
    ) -> CompletedTransaction | None:
        """Apply an end-transaction marker. Returns the transaction that it ended, if it had
        records.
        """
        producer = self.producers.get(header.producer_id)
        if producer is None:
            producer = self._add(header.producer_id)
        if producer.producer_epoch != header.producer_epoch:
            producer.batches.clear()
            producer.producer_epoch = header.producer_epoch
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp_ms = marker.timestamp_ms
        self.verifications.ended(header.producer_id, header.producer_epoch)
        self.end_offset = header.next_offset
        first_offset = producer.transaction_start_offset
        if first_offset < 0:
            return None
        producer.transaction_start_offset = -1
        self._ongoing.pop(first_offset, None)
        if self._completed is _NONE:
            self._completed = {}
        self._completed[first_offset] = header.base_offset
        aborted = marker.type is ControlType.abort
        return CompletedTransaction(
            header.producer_id,
            first_offset,
            header.base_offset,
            aborted,
            next(iter(self._ongoing), header.next_offset),
        )

    def hanging_transactions(self, now_ms: int, timeout_ms: int) -> int:
        """How many open transactions had no batch for so long that their coordinator must have
        ended them: `timeout_ms` is transaction.max.timeout.ms (hasLateTransaction).
        """
        latest_ms = now_ms - timeout_ms - LATE_MS
        return sum(
            0 < self.producers[producer_id].last_timestamp_ms < latest_ms
            for producer_id in self._ongoing.values()
        )

    def remove_expired(self, now_ms: int, expiration_ms: int) -> int:
        """Expire producers that were silent for `producer.id.expiration.ms`, except in open
        transactions.

        Returns how many.
        """
        expired = [
            producer.producer_id
            for producer in self.producers.values()
            if producer.transaction_start_offset < 0
            and now_ms - producer.last_timestamp_ms >= expiration_ms
        ]
        for producer_id in expired:
            del self.producers[producer_id]
        self.verifications.remove_expired(now_ms, expiration_ms)
        return len(expired)


def _old_epoch(producer: Producer, producer_epoch: int) -> ApiError:
    return ApiError(
        ErrorCode.invalid_producer_epoch,
        f"producer {producer.producer_id} sent epoch {producer_epoch}; "
        f"its latest here is {producer.producer_epoch}",
    )


def _check_sequence(producer: Producer, header: BatchHeader) -> None:
    """The rules of ProducerAppendInfo.checkSequence."""
    if header.producer_epoch != producer.producer_epoch:
        if header.base_sequence == 0 or producer.producer_epoch == NO_EPOCH:
            return
        expected = 0
    else:
        last = producer.last_sequence
        expected = (last + 1) & LARGEST_SEQUENCE if last != NO_SEQUENCE else 0
        if header.base_sequence == expected:
            return
    raise ApiError(
        ErrorCode.out_of_order_sequence_number,
        f"producer {header.producer_id} sent sequence {header.base_sequence} in epoch"
        f" {header.producer_epoch}; {expected} was expected",
    )
