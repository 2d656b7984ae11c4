"""OffsetCommit (key 8): a group, or a consumer on its own, keeps the offsets it has read to.

v2 to v4: a retention time of the client's own (KIP-211 took it away). v6 (KIP-320): leader epochs.
v7 (KIP-345): static members. v8: flexible. v9 (KIP-848): GROUP_ID_NOT_FOUND. v10: topic ids.
"""

from __future__ import annotations

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
    errors: dict[tuple[int, int], ErrorCode] = {}
    offsets: list[OffsetToCommit] = []
    places: list[tuple[int, int]] = []
    for number, topic in enumerate(request.topics):
        found = _sort_out(number, topic, errors, context)
        offsets += found
        places += [(number, offset.partition) for offset in found]
    if offsets:
        try:
            results = await context.broker.groups.commit(_commit(request, tuple(offsets), context))
        except ApiError as error:
            results = [error.code] * len(offsets)
        errors.update(zip(places, results, strict=True))
    return _response(request, errors, context)


def _sort_out(
    number: int, topic: Any, errors: dict[tuple[int, int], ErrorCode], context: Context
) -> list[OffsetToCommit]:
    """The offsets of partitions that exist; the others get their error."""
    image = context.broker.image
    with_ids = context.version >= _TOPIC_IDS
    if with_ids:
        known = None if topic.topic_id is None else image.topic_by_id(topic.topic_id)
    else:
        known = image.topic(topic.name)
    offsets = []
    for each in topic.partitions:
        if known is None:
            error = ErrorCode.unknown_topic_id if with_ids else ErrorCode.unknown_topic_or_partition
            errors[number, each.partition_index] = error
        elif not 0 <= each.partition_index < len(known.partitions):
            errors[number, each.partition_index] = ErrorCode.unknown_topic_or_partition
        else:
            offsets.append(
                OffsetToCommit(
                    known.name,
                    known.topic_id,
                    each.partition_index,
                    each.committed_offset,
                    _COMMITTED_LEADER_EPOCH(each),
                    each.committed_metadata,
                )
            )
    return offsets


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


def _response(request: Any, errors: dict[tuple[int, int], ErrorCode], context: Context) -> Any:
    build = context.messages
    return build.OffsetCommitResponse(
        topics=tuple(
            build.OffsetCommitResponseTopic(
                name=_TOPIC_NAME(topic),
                topic_id=_TOPIC_ID(topic),
                partitions=tuple(
                    build.OffsetCommitResponsePartition(
                        partition_index=each.partition_index,
                        error_code=errors[number, each.partition_index],
                    )
                    for each in topic.partitions
                ),
            )
            for number, topic in enumerate(request.topics)
        )
    )
