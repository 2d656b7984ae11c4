"""The transactional ids of one partition of `__transaction_state`.

All state is in the log, changed by `apply` only, apart from two things that are lost with the
partition, as in Kafka: a producer's last epoch, and which markers of a prepared transaction are
written already (the next coordinator writes them all again).
"""

from __future__ import annotations

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.shards.step import ProducerEpoch, TransactionMarker
from ottla.transactions import describe, expiry, initialize, partitions
from ottla.transactions.complete import complete, markers_due
from ottla.transactions.end import end
from ottla.transactions.requests import (
    AddRequest,
    DescribedTransaction,
    EndRequest,
    InitRequest,
    ListFilter,
    ProducerResult,
)
from ottla.transactions.state import PREPARED
from ottla.transactions.step import Step
from ottla.transactions.stored import TopicPartition, TransactionRecord, TransactionValue


class TransactionShard:
    """Every transactional id of the partition, and the deciders over them.

    Deciders that may need a producer id raise ProducerIdNeeded if `new_producer_id` is None.
    """

    def __init__(self) -> None:
        self.transactions: dict[str, TransactionValue] = {}

    # What the log has.

    def apply(
        self,
        record: TransactionRecord,
        offset: int,
        timestamp_ms: int,
        producer: ProducerEpoch | None,
    ) -> None:
        """Takes over one record of the log, while loading and ever after."""
        if record.value is None:
            self.transactions.pop(record.transactional_id, None)
        else:
            self.transactions[record.transactional_id] = record.value

    def apply_marker(self, marker: TransactionMarker, offset: int) -> None:
        """Nothing to do: the coordinator's own records are in no transaction."""

    def loaded(self, step: Step) -> None:
        """Transactions that a coordinator before this one prepared are completed here."""
        for transactional_id, value in self.transactions.items():
            if value.state in PREPARED:
                step.committed.append(markers_due(transactional_id, value))

    def expired(self, event: None, step: Step) -> None:
        raise AssertionError("transactions set no timers")

    def unloaded(self, step: Step) -> None:
        """No request waits in memory."""

    # Producers' requests.

    def initialize(
        self, request: InitRequest, new_producer_id: int | None, step: Step
    ) -> ProducerResult:
        """InitProducerId with a transactional id."""
        if not 0 < request.timeout_ms <= step.settings.max_timeout_ms:
            return ProducerResult(ErrorCode.invalid_transaction_timeout)
        value = self.transactions.get(request.transactional_id)
        if value is not None:
            return initialize.initialize(value, request, new_producer_id, step)
        if len(self.transactions) >= step.settings.max_ids:
            raise ApiError(
                ErrorCode.policy_violation,
                f"this coordinator has {step.settings.max_ids} transactional ids, which is its "
                "limit; let unused ones expire (transactional.id.expiration.ms)",
            )
        return initialize.begin(request, new_producer_id, step)

    def add(self, request: AddRequest, step: Step) -> ErrorCode:
        """AddPartitionsToTxn and AddOffsetsToTxn."""
        value = self.transactions.get(request.transactional_id)
        return partitions.add(value, request, step)

    def verify(
        self,
        transactional_id: str,
        producer: ProducerEpoch,
        wanted: frozenset[TopicPartition],
    ) -> dict[TopicPartition, ErrorCode]:
        """AddPartitionsToTxn that only verifies: each partition's error."""
        return partitions.verify(self.transactions.get(transactional_id), producer, wanted)

    def end(self, request: EndRequest, new_producer_id: int | None, step: Step) -> ProducerResult:
        """EndTxn."""
        value = self.transactions.get(request.transactional_id)
        return end(value, request, new_producer_id, step)

    # Markers.

    def written(
        self,
        transactional_id: str,
        producer: ProducerEpoch,
        done: frozenset[TopicPartition],
        step: Step,
    ) -> None:
        """These partitions of a prepared transaction have their markers, or are deleted.

        The last one completes it; nothing happens if it is complete already. Should that record be
        refused, the markers stay written: call again without partitions.
        """
        value = self.transactions.get(transactional_id)
        if value is None or value.state not in PREPARED or value.producer != producer:
            return
        value = value._replace(partitions=value.partitions - done)
        self.transactions[transactional_id] = value
        if not value.partitions:
            complete(transactional_id, value, step)

    # Time.

    def abort_timed_out(self, cluster_version: int, new_producer_ids: list[int], step: Step) -> int:
        """Aborts open transactions whose time is over; returns how many producer ids it lacks."""
        return expiry.abort_timed_out(self.transactions, cluster_version, new_producer_ids, step)

    def remove_expired(self, step: Step) -> None:
        """Removes transactional ids that nobody has used for a long time."""
        expiry.remove_expired(self.transactions, step)

    # Administration.

    def describe(self, transactional_id: str) -> DescribedTransaction:
        return DescribedTransaction(transactional_id, self.transactions.get(transactional_id))

    def list(self, wanted: ListFilter, step: Step) -> list[tuple[str, TransactionValue]]:
        """Transactional ids and their states, as ListTransactions filters them."""
        return [
            (transactional_id, value)
            for transactional_id, value in self.transactions.items()
            if describe.matches(value, wanted, step.now_ms)
        ]
