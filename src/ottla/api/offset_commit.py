"""OffsetCommit (key 8): a group, or a consumer without one, stores the offsets it has read to.

v2 to v4: a retention time from the client (removed by KIP-211). v6 (KIP-320): leader epochs.
v7 (KIP-345): static members. v8: flexible. v9 (KIP-848): GROUP_ID_NOT_FOUND. v10: topic ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from ottla.api.context import Context
from ottla.groups.offsets.commit import DEFAULT_RETENTION, CommitRequest, OffsetToCommit
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versioned_field import VersionedField

KEY: Final = 8
ACCESS: Final = (
    Access(Operation.READ, Resource.GROUP),
    Access(Operation.READ, Resource.TOPIC),
)

_GROUP_ID_NOT_FOUND: Final = 9
_TOPIC_IDS: Final = 10

_COMMITTED_LEADER_EPOCH: Final = VersionedField(
    KEY, "OffsetCommitRequestPartition", "committed_leader_epoch", -1
)
_GROUP_INSTANCE_ID: Final = VersionedField[str | None](
    KEY, "OffsetCommitRequest", "group_instance_id", None
)
_RETENTION_TIME: Final = VersionedField(
    KEY, "OffsetCommitRequest", "retention_time", DEFAULT_RETENTION
)
_TOPIC_NAME: Final = VersionedField(KEY, "OffsetCommitRequestTopic", "name", "")
_TOPIC_ID: Final = VersionedField[UUID | None](KEY, "OffsetCommitRequestTopic", "topic_id", None)


async def handle(request: Any, context: Context) -> Any:
    codes: list[ErrorCode | None] = []
    """The error of each partition, in the request's order; None if its offset is committed."""
    offsets: list[OffsetToCommit] = []
    for topic in request.topics:
        _check(topic, codes, offsets, context)
    results: list[ErrorCode] = []
    if offsets:
        try:
            results = await context.broker.groups.commit(_commit(request, tuple(offsets), context))
        except ApiError as error:
            results = [error.code] * len(offsets)
    committed = iter(results)
    errors = iter([next(committed) if code is None else code for code in codes])
    return _response(request, errors, context)


def _check(
    topic: Any, codes: list[ErrorCode | None], offsets: list[OffsetToCommit], context: Context
) -> None:
    """Collect the offsets of existing partitions; the others get their error."""
    image = context.broker.image
    if context.version >= _TOPIC_IDS:
        missing = ErrorCode.unknown_topic_id
        known = None if topic.topic_id is None else image.topic_by_id(topic.topic_id)
    else:
        missing = ErrorCode.unknown_topic_or_partition
        known = image.topic(topic.name)
    for each in topic.partitions:
        index = each.partition_index
        if known is None:
            codes.append(missing)
        elif not 0 <= index < len(known.partitions):
            codes.append(ErrorCode.unknown_topic_or_partition)
        else:
            codes.append(None)
            offsets.append(
                OffsetToCommit(
                    known.name,
                    known.topic_id,
                    index,
                    each.committed_offset,
                    _COMMITTED_LEADER_EPOCH(each),
                    each.committed_metadata,
                )
            )


def _commit(request: Any, offsets: tuple[OffsetToCommit, ...], context: Context) -> CommitRequest:
    return CommitRequest(
        group=request.group_id,
        generation=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=_GROUP_INSTANCE_ID(request),
        retention_ms=_RETENTION_TIME(request),
        offsets=offsets,
        knows_group_id_not_found=context.version >= _GROUP_ID_NOT_FOUND,
    )


def _response(request: Any, errors: Iterator[ErrorCode], context: Context) -> Any:
    build = context.messages
    partition = build.OffsetCommitResponsePartition
    topics = []
    for topic in request.topics:
        partitions = [
            partition(partition_index=each.partition_index, error_code=next(errors))
            for each in topic.partitions
        ]
        topics.append(
            build.OffsetCommitResponseTopic(
                name=_TOPIC_NAME(topic), topic_id=_TOPIC_ID(topic), partitions=tuple(partitions)
            )
        )
    return build.OffsetCommitResponse(topics=tuple(topics))
