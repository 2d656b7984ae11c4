"""Bugs of transactions that other implementations had, as patches like those in `planted`.

Each belongs to one of twelve traps, and names the issue that it is known from. Trap 8 is in
`planted`: offsets that stay pending. Trap 12 is not here, as nothing is compacted in the time of a
run: `test_trap_12_*` in `tests/log/test_compaction.py` and `tests/log/test_cleaning.py` show it.
Modules that are compiled ignore patches, so the bugs are planted in others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.api import transactional_produce, write_txn_markers
from ottla.coordinator import transaction_verifier
from ottla.coordinator.marker_sender import MarkerSender
from ottla.coordinator.transaction_verifier import TransactionVerifier
from ottla.groups.offsets import removal
from ottla.groups.offsets.pending import PendingOffsets
from ottla.groups.shard import GroupShard
from ottla.log.verification import Verifications
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica import partition_reader
from ottla.replica.partition_reader import PartitionReader
from ottla.transactions import initialize, partitions
from ottla.transactions.abort import abort_on_server
from ottla.transactions.shard import TransactionShard
from ottla.transactions.state import ONGOING, PREPARE_ABORT, PREPARED
from ottla.transactions.step import Step
from ottla.transactions.stored import MAX_EPOCH
from simulation.faults import Fault
from simulation.planted import Patch, Sighting


def the_epoch_is_checked_before_the_pending_state(patch: Patch) -> None:
    """Trap 1: a producer that is faster than its last transaction's markers fences itself
    (KAFKA-18464)."""
    right = partitions.add

    def add(value: Any, request: Any, step: Any) -> ErrorCode:
        if value is not None and value.state in PREPARED:
            if request.producer.producer_id != value.producer_id:
                return ErrorCode.invalid_producer_id_mapping
            if request.producer.epoch != value.epoch:
                return ErrorCode.producer_fenced
        return right(value, request, step)

    patch.setattr(partitions, "add", add)


def a_fence_takes_two_epochs(patch: Patch) -> None:
    """Trap 2: fencing an open transaction bumps the epoch, and aborting it does so again
    (KAFKA-19367)."""
    right = abort_on_server

    def abort(name: str, value: Any, *given: Any) -> None:
        bumped = value.moved(value.state, value.last_update_ms, epoch=value.epoch + 2)
        right(name, bumped._replace(epoch=value.epoch + 1), *given)

    patch.setattr(initialize, "abort_on_server", abort)


def a_refused_fence_takes_an_epoch(patch: Patch) -> None:
    """Trap 3: the epoch of a fence is taken before its record is written (KAFKA-9666)."""

    def take(shard: TransactionShard, step: Step) -> None:
        for name, value in step.records:
            known = shard.transactions.get(name)
            if value is None or known is None:
                continue
            if known.state is ONGOING and value.state is PREPARE_ABORT:
                shard.transactions[name] = known._replace(epoch=value.epoch)

    for method in ("initialize", "abort_timed_out"):
        patch.setattr(TransactionShard, method, _then(getattr(TransactionShard, method), take))


def _then(right: Callable[..., Any], take: Callable[[TransactionShard, Step], None]) -> Any:
    def decide(self: TransactionShard, first: Any, second: Any, step: Step) -> Any:
        result = right(self, first, second, step)
        take(self, step)
        return result

    return decide


def a_repeated_marker_is_an_error(patch: Patch) -> None:
    """Trap 4: the answer to a marker is lost, and the one sent again is refused for ever
    (KAFKA-19999)."""
    right = write_txn_markers._append

    def append(marker: Any, topic: str, index: int, codes: Any, context: Any) -> Any:
        partition = context.broker.partitions.get(topic, index)
        if partition is not None:
            known = partition.log.producers.producers.get(marker.producer_id)
            if known is not None and marker.producer_epoch <= known.producer_epoch:
                raise ApiError(ErrorCode.invalid_producer_epoch)
        return right(marker, topic, index, codes, context)

    patch.setattr(write_txn_markers, "_append", append)


def markers_are_sent_once(patch: Patch) -> None:
    """Trap 5: a transaction that is not completed; the next one gets CONCURRENT_TRANSACTIONS for
    ever (librdkafka 3003)."""

    async def never(self: MarkerSender, *_: Any) -> None:
        return None

    patch.setattr(MarkerSender, "_again", never)


def read_committed_returns_one_batch_more(patch: Patch) -> None:
    """Trap 6: the last stable offset is off by one (Redpanda 3036)."""
    right = PartitionReader.read

    def read(self: PartitionReader, offset: int, *given: Any, **named: Any) -> Any:
        found = right(self, offset, *given, **named)
        if (
            named.get("committed_only")
            and found.last_stable_offset == offset < found.high_watermark
        ):
            return right(self, offset, *given, **{**named, "committed_only": False})
        return found

    patch.setattr(PartitionReader, "read", read)


def latest_is_the_high_watermark(patch: Patch) -> None:
    """Trap 6: ListOffsets ignores read_committed."""
    right = PartitionReader.end_for
    patch.setattr(PartitionReader, "end_for", lambda self, _: right(self, False))


def aborted_transactions_are_not_listed(patch: Patch) -> None:
    """Trap 7: readers take aborted records for committed ones."""
    patch.setattr(partition_reader, "aborted_transactions", lambda *_, **__: ())


def offsets_expire_in_open_transactions(patch: Patch) -> None:
    """Trap 9: the tombstone of an expired offset drops what the transaction commits."""
    right = removal.expire_offsets

    def expire(group: Any, offsets: Any, pending: PendingOffsets, step: Any) -> bool:
        return right(group, offsets, PendingOffsets(), step) and not pending.has_group(
            group.group_id
        )

    patch.setattr(removal, "expire_offsets", expire)


def memory_and_log_disagree_about_offsets(patch: Patch) -> None:
    """Trap 9: in memory a transaction's offset replaces a plain one that came later (Redpanda
    31483)."""
    right = GroupShard._apply_beside_transactions

    def apply(self: GroupShard, key: Any, value: Any, offset: int, producer: Any) -> None:
        if self._loaded and producer is None and value is not None:
            self.offsets.apply(key, value)
        else:
            right(self, key, value, offset, producer)

    patch.setattr(GroupShard, "_apply_beside_transactions", apply)


def a_later_batch_may_come_first(patch: Patch) -> None:
    """Trap 11: the first batch is refused while the second is accepted: the first is out of order
    for ever."""
    patch.setattr(Verifications, "check_sequence", lambda *_: None)


def produce_answers_that_the_producer_is_fenced(patch: Patch) -> None:
    """Trap 10: PRODUCER_FENCED ends a producer that could abort and go on (KAFKA-14278)."""

    def unchanged(code: ErrorCode, _: Any) -> ErrorCode:
        return code

    patch.setattr(transactional_produce, "produce_error", unchanged)
    patch.setattr(transaction_verifier, "client_error", unchanged)


def partitions_are_not_added(patch: Patch) -> None:
    """A transaction's first batch in a partition does not ask the coordinator, so that partition
    gets no marker (KIP-890)."""

    async def verify(
        self: TransactionVerifier, name: str, producer: Any, wanted: Any, asked: Any
    ) -> Any:
        return dict.fromkeys(wanted, ErrorCode.none)

    patch.setattr(TransactionVerifier, "verify", verify)


def the_first_marker_completes(patch: Patch) -> None:
    """A transaction is complete when one of its partitions has its marker."""
    right = TransactionShard.written

    def written(self: TransactionShard, name: str, producer: Any, done: Any, step: Any) -> None:
        value = self.transactions.get(name)
        right(self, name, producer, done if value is None else value.partitions, step)

    patch.setattr(TransactionShard, "written", written)


def a_former_producer_may_commit(patch: Patch) -> None:
    """EndTxn compares no epochs."""
    right = TransactionShard.end

    def end(self: TransactionShard, request: Any, new_id: Any, step: Any) -> Any:
        value = self.transactions.get(request.transactional_id)
        if value is not None and value.epoch < MAX_EPOCH:
            request = request._replace(producer=value.producer)
        return right(self, request, new_id, step)

    patch.setattr(TransactionShard, "end", end)


TRAPS: Final[dict[Callable[[Patch], None], Sighting]] = {
    the_epoch_is_checked_before_the_pending_state: Sighting(
        0, (Fault(1_500, "slow markers", 1, 2, 12_000, 0),)
    ),
    a_fence_takes_two_epochs: Sighting(),
    a_refused_fence_takes_an_epoch: Sighting(7),
    a_repeated_marker_is_an_error: Sighting(),
    markers_are_sent_once: Sighting(4),
    read_committed_returns_one_batch_more: Sighting(),
    latest_is_the_high_watermark: Sighting(),
    aborted_transactions_are_not_listed: Sighting(),
    offsets_expire_in_open_transactions: Sighting(1),
    memory_and_log_disagree_about_offsets: Sighting(),
    produce_answers_that_the_producer_is_fenced: Sighting(),
    a_later_batch_may_come_first: Sighting(5, (Fault(1_500, "slow markers", 1, 2, 12_000, 0),)),
    partitions_are_not_added: Sighting(),
    the_first_marker_completes: Sighting(5),
    a_former_producer_may_commit: Sighting(3),
}
"""Found by runs with transactional clients."""
