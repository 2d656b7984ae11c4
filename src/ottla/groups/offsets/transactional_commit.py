"""TxnOffsetCommit: which group may commit in a transaction, and the records of what it commits.

The records belong to the producer's transaction; `pending` keeps them until its marker comes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.heartbeat import transactional_commit_error
from ottla.groups.consumer.commit import FIRST_TRANSACTIONAL_VERSION, late_member
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.offsets.commit import (
    OffsetRecords,
    OffsetToCommit,
    check_count,
    check_late,
    check_streams,
    write_offsets,
)
from ottla.groups.offsets.pending import PendingOffsets
from ottla.groups.offsets.store import OffsetStore
from ottla.groups.settings import GroupSettings
from ottla.groups.step import Step
from ottla.groups.stored import NO_TIMESTAMP, OffsetCommitKey
from ottla.groups.streams.group import StreamsGroup
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.shards.step import ProducerEpoch

_ADDING_VERSION: Final = 5


class TransactionalCommitRequest(NamedTuple):
    """Offsets of one group, in the open transaction of one producer."""

    group: str
    transactional_id: str
    producer: ProducerEpoch
    generation: int
    """-1 before TxnOffsetCommit 3, and from clients without group metadata (KIP-447). Of a member
    of a consumer group: its epoch.
    """
    member_id: str
    group_instance_id: str | None
    offsets: tuple[OffsetToCommit, ...]
    version: int
    """Of TxnOffsetCommit."""
    prepared: OffsetRecords | None = None
    """What was made of `offsets` before, if they are many."""

    @property
    def adds_partition(self) -> bool:
        """The request itself makes the group's partition a part of the transaction (KIP-890);
        before, AddOffsetsToTxn did."""
        return self.version >= _ADDING_VERSION

    @property
    def knows_epochs(self) -> bool:
        """The producer knows the errors of consumer groups (KIP-1319)."""
        return self.version >= FIRST_TRANSACTIONAL_VERSION


def commit_in_transaction(
    group: ClassicGroup | ConsumerGroup | StreamsGroup | None,
    request: TransactionalCommitRequest,
    offsets: OffsetStore,
    pending: PendingOffsets,
    step: Step,
) -> list[ErrorCode]:
    """The error of each offset in turn, and a record for each that is accepted.

    Raises ApiError if the request as a whole is refused: ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID or
    FENCED_INSTANCE_ID for a client that does not own the partitions (any more), since version 6
    also STALE_MEMBER_EPOCH and GROUP_ID_NOT_FOUND (KIP-1319),
    UNKNOWN_SERVER_ERROR for too many offsets, and INVALID_COMMIT_OFFSET_SIZE if the group or the
    transaction would have too many.
    """
    check_count(request.offsets, step.settings)
    _check(group, request, step.settings)
    count = offsets.count(request.group) + pending.count(request.group)
    if count + len(request.offsets) > step.settings.max_group_offsets:
        raise ApiError(ErrorCode.invalid_commit_offset_size)
    _check_transaction(request, pending, step)
    step.producer = request.producer
    if request.prepared is None:
        return write_offsets(request.group, request.offsets, NO_TIMESTAMP, step)
    errors, step.records, step.encoded = request.prepared
    return errors


def _check_transaction(
    request: TransactionalCommitRequest, pending: PendingOffsets, step: Step
) -> None:
    """Raises ApiError if the transaction would have offsets in too many partitions."""
    keys = pending.keys_of_producer(request.producer.producer_id)
    if len(keys) + len(request.offsets) <= step.settings.max_transaction_offsets:
        return
    new = {OffsetCommitKey(request.group, each.topic, each.partition) for each in request.offsets}
    if len(keys | new) > step.settings.max_transaction_offsets:
        raise ApiError(ErrorCode.invalid_commit_offset_size)


def _check(
    group: ClassicGroup | ConsumerGroup | StreamsGroup | None,
    request: TransactionalCommitRequest,
    settings: GroupSettings,
) -> None:
    if group is None:
        if request.generation < 0:
            return
        if request.knows_epochs:
            raise ApiError(ErrorCode.group_id_not_found)
        raise ApiError(ErrorCode.illegal_generation)
    if isinstance(group, ConsumerGroup):
        epoch = request.generation
        late = late_member(
            group,
            request.member_id,
            request.group_instance_id,
            epoch,
            version=request.version,
            is_transactional=True,
        )
        if late is not None:
            check_late(late, epoch, request.offsets, settings, knows_epochs=request.knows_epochs)
        return
    if isinstance(group, StreamsGroup):
        check_streams(
            group, request, request.version, request.offsets, settings, is_transactional=True
        )
        return
    error = transactional_commit_error(
        group, request.member_id, request.group_instance_id, request.generation
    )
    if error is not ErrorCode.none:
        raise ApiError(error)
