"""OffsetCommit: which group may commit, and the records of what it commits.

A commit is decided, appended and applied at once. The records of a large one are made and encoded
before, part by part (`OffsetRecords`): they do not depend on the group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.heartbeat import commit_error, extend_session_by_commit
from ottla.groups.consumer.commit import FIRST_COMMIT_VERSION, late_member, partition_error
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member
from ottla.groups.offsets.pending import PendingOffsets
from ottla.groups.offsets.store import OffsetStore
from ottla.groups.records import Record
from ottla.groups.settings import GroupSettings
from ottla.groups.step import Step
from ottla.groups.stored import (
    NO_TIMESTAMP,
    CoordinatorRecord,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ottla.groups.streams import commit as streams_commit
from ottla.groups.streams.group import StreamsGroup
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.shards.encoding import fits_string

DEFAULT_RETENTION = -1
"""The client leaves the retention to the broker."""
_LATEST = 2**63 - 1
"""Times stand in 64 bits, and a client may ask for any retention."""
MAX_COMMITTED_RECORDS: Final = 1_000
"""Of one entry of `Step.committed`: timelines take a few microseconds for each."""


class OffsetToCommit(NamedTuple):
    """One partition's offset, as the client gave it."""

    topic: str
    topic_id: UUID | None
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None


class OffsetRecords(NamedTuple):
    """What was made of the offsets of a large commit before its decision."""

    errors: list[ErrorCode]
    """Of each offset in turn."""
    records: list[Record]
    encoded: list[tuple[bytes, bytes | None]]
    """The key and value of each record."""


class CommitRequest(NamedTuple):
    """Offsets of one group."""

    group: str
    generation: int
    """Of a member of a consumer group: its epoch."""
    member_id: str
    group_instance_id: str | None
    retention_ms: int
    offsets: tuple[OffsetToCommit, ...]
    version: int
    """Of OffsetCommit."""
    prepared: OffsetRecords | None = None
    """What was made of `offsets` before, if they are many."""


class Cause(Enum):
    """Who committed offsets, or why they were removed."""

    MEMBER = "a member of the group, or a transaction"
    SIMPLE = "no member, and the group has none: a simple consumer, or a tool"
    OUTSIDE = "no member of a group that has or had members"
    OFFSET_DELETE = "OffsetDelete"
    DELETE_GROUPS = "DeleteGroups"
    EXPIRED = "offsets.retention.minutes"


class OffsetsCommitted(NamedTuple):
    """What to do once a commit or a removal is below the high watermark: tell who follows the
    groups. `before`: what each record replaces.
    """

    records: Sequence[Record]
    now_ms: int
    before: Sequence[OffsetCommitValue | None]
    cause: Cause


def commit(
    group: ClassicGroup | ConsumerGroup | StreamsGroup | None,
    request: CommitRequest,
    offsets: OffsetStore,
    pending: PendingOffsets,
    step: Step,
) -> list[ErrorCode]:
    """The error of each offset in turn, and a record for each that is accepted.

    Raises ApiError if the request as a whole is refused: ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID,
    FENCED_INSTANCE_ID, REBALANCE_IN_PROGRESS or STALE_MEMBER_EPOCH for a client that does not own
    the partitions (any more), UNSUPPORTED_VERSION where it cannot know member epochs,
    UNKNOWN_SERVER_ERROR for too many offsets, and INVALID_COMMIT_OFFSET_SIZE if a
    group would have too many.
    """
    check_count(request.offsets, step.settings)
    _check(group, request, step.settings)
    count = offsets.count(request.group) + pending.count(request.group)
    if count + len(request.offsets) > step.settings.max_group_offsets:
        raise ApiError(ErrorCode.invalid_commit_offset_size)
    if isinstance(group, ClassicGroup) and request.member_id in group.members:
        extend_session_by_commit(group, request.member_id, step)
    prepared = request.prepared
    if prepared is None:
        expire_ms = expiry_ms(request.retention_ms, step.now_ms)
        errors = write_offsets(request.group, request.offsets, expire_ms, step)
    else:
        errors, step.records, step.encoded = prepared
    if step.records:
        step.committed += committed(step.records, step.now_ms, offsets, _cause(group, request))
    return errors


def _cause(
    group: ClassicGroup | ConsumerGroup | StreamsGroup | None, request: CommitRequest
) -> Cause:
    if request.generation >= 0:
        return Cause.MEMBER
    if isinstance(group, ClassicGroup) and group.protocol_type is not None:
        return Cause.OUTSIDE
    return Cause.SIMPLE if group is None or isinstance(group, ClassicGroup) else Cause.OUTSIDE


def expiry_ms(retention_ms: int, now_ms: int) -> int:
    """When an offset expires; NO_TIMESTAMP if the client leaves that to the broker."""
    if retention_ms == DEFAULT_RETENTION:
        return NO_TIMESTAMP
    return min(now_ms + retention_ms, _LATEST)


def write_offsets(
    group: str, offsets: Sequence[OffsetToCommit], expire_timestamp_ms: int, step: Step
) -> list[ErrorCode]:
    """Adds a record for each offset that may be stored; the error of each offset in turn."""
    errors = []
    for offset in offsets:
        metadata = offset.metadata or ""
        if _is_too_long(metadata, step.settings):
            errors.append(ErrorCode.offset_metadata_too_large)
            continue
        errors.append(ErrorCode.none)
        value = OffsetCommitValue(
            offset.offset,
            offset.leader_epoch,
            metadata,
            step.now_ms,
            expire_timestamp_ms,
            # A record with an expiry has version 1, without a topic id: memory agrees with the log.
            offset.topic_id if expire_timestamp_ms == NO_TIMESTAMP else None,
        )
        key = OffsetCommitKey(group, offset.topic, offset.partition)
        step.records.append(CoordinatorRecord(key, value))
    return errors


def check_count(offsets: Sequence[OffsetToCommit], settings: GroupSettings) -> None:
    """Raises ApiError for more offsets than one commit may have: Kafka's for a batch that is larger
    than max.message.bytes (CoordinatorOperationExceptionHelper).
    """
    if len(offsets) > settings.max_commit_offsets:
        raise ApiError(ErrorCode.unknown_server_error)


def committed(
    records: Sequence[Record], now_ms: int, offsets: OffsetStore, cause: Cause
) -> list[OffsetsCommitted]:
    """The work that is due once these records are committed, in parts; before they are applied."""
    found = []
    for start in range(0, len(records), MAX_COMMITTED_RECORDS):
        some = records[start : start + MAX_COMMITTED_RECORDS]
        found.append(OffsetsCommitted(some, now_ms, _replaced(some, offsets), cause))
    return found


def _replaced(records: Sequence[Record], offsets: OffsetStore) -> list[OffsetCommitValue | None]:
    """What each record replaces. Calls nothing for each of them: they are decided in one go, and
    the records of a commit are of one group, topic after topic.
    """
    found: list[OffsetCommitValue | None] = [None] * len(records)
    group = topic = None
    held: Mapping[int, OffsetCommitValue] = {}
    for number, (key, _) in enumerate(records):
        if key.__class__ is not OffsetCommitKey:
            continue
        if key.topic != topic or key.group != group:
            group, topic = key.group, key.topic
            held = offsets.of_group(group).get(topic, {})
        if key.partition in held:
            found[number] = held[key.partition]
    return found


def _check(
    group: ClassicGroup | ConsumerGroup | StreamsGroup | None,
    request: CommitRequest,
    settings: GroupSettings,
) -> None:
    if group is None:
        # Without a generation it is a consumer that manages its own partitions: a so-called simple
        # group comes into being as its offset is applied.
        if request.generation < 0:
            return
        if request.version >= FIRST_COMMIT_VERSION:
            raise ApiError(ErrorCode.group_id_not_found)
        raise ApiError(ErrorCode.illegal_generation)
    if isinstance(group, ConsumerGroup):
        late = late_member(
            group,
            request.member_id,
            request.group_instance_id,
            request.generation,
            version=request.version,
        )
        if late is not None:
            check_late(late, request.generation, request.offsets, settings)
        return
    if isinstance(group, StreamsGroup):
        check_streams(
            group, request, request.version, request.offsets, settings, is_transactional=False
        )
        return
    error = commit_error(group, request.member_id, request.group_instance_id, request.generation)
    if error is not ErrorCode.none:
        raise ApiError(error)


def check_late(
    member: Member,
    epoch: int,
    offsets: Sequence[OffsetToCommit],
    settings: GroupSettings,
    *,
    knows_epochs: bool = True,
) -> None:
    """A member that is in a later epoch than it says must have had each partition since then.

    Raises ApiError for all where it has not had one of them, as Kafka does.
    """
    for offset in offsets:
        if offset.topic_id is None or _is_too_long(offset.metadata or "", settings):
            continue
        error = partition_error(
            member, epoch, offset.topic_id, offset.partition, knows_epochs=knows_epochs
        )
        if error is not ErrorCode.none:
            raise ApiError(error)


class Committing(Protocol):
    """Who commits; both kinds of requests have it."""

    @property
    def generation(self) -> int: ...
    @property
    def member_id(self) -> str: ...
    @property
    def group_instance_id(self) -> str | None: ...


def check_streams(
    group: StreamsGroup,
    request: Committing,
    version: int,
    offsets: Sequence[OffsetToCommit],
    settings: GroupSettings,
    *,
    is_transactional: bool,
) -> None:
    """The same of a streams group. Raises ApiError for all."""
    epoch = request.generation
    late = streams_commit.late_member(
        group,
        request.member_id,
        request.group_instance_id,
        epoch,
        version=version,
        is_transactional=is_transactional,
    )
    if late is None:
        return
    for offset in offsets:
        if _is_too_long(offset.metadata or "", settings):
            continue
        if not streams_commit.had_since(group, late, epoch, offset.topic, offset.partition):
            raise ApiError(streams_commit.late_error(version, is_transactional=is_transactional))


def _is_too_long(metadata: str, settings: GroupSettings) -> bool:
    """Kafka counts in Java's characters, whatever the setting's name says."""
    size = len(metadata) if metadata.isascii() else len(metadata.encode("utf-16-le")) // 2
    return size > settings.offset_metadata_max_bytes or not fits_string(metadata)
