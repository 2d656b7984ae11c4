"""OffsetCommit (key 8): a group, or a consumer without one, stores the offsets it has read to.

v2 to v4: a retention time from the client (removed by KIP-211). v6 (KIP-320): leader epochs.
v7 (KIP-345): static members. v8: flexible. v9 (KIP-848): member epochs, GROUP_ID_NOT_FOUND. v10:
topic ids.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from ottla.api.context import Context
from ottla.api.offsets_to_commit import OffsetsToCommit
from ottla.groups.offsets.commit import DEFAULT_RETENTION, CommitRequest, OffsetToCommit
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.protocol.versioned_field import VersionedField

KEY: Final = 8
ACCESS: Final = (
    Access(Operation.READ, Resource.GROUP),
    Access(Operation.READ, Resource.TOPIC),
)

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
    offsets = OffsetsToCommit(_COMMITTED_LEADER_EPOCH)
    image = context.broker.image
    for topic in request.topics:
        if context.version >= _TOPIC_IDS:
            known = None if topic.topic_id is None else image.topic_by_id(topic.topic_id)
            await offsets.add(topic, known, ErrorCode.unknown_topic_id)
        else:
            known = image.topic(topic.name)
            await offsets.add(topic, known, ErrorCode.unknown_topic_or_partition)
    errors = await offsets.commit(
        lambda found: context.broker.groups.commit(_commit(request, found, context))
    )
    build = context.messages

    def answer(index: int, error: ErrorCode) -> Any:
        return build.OffsetCommitResponsePartition(partition_index=index, error_code=error)

    topics = [
        build.OffsetCommitResponseTopic(
            name=_TOPIC_NAME(topic),
            topic_id=_TOPIC_ID(topic),
            partitions=await offsets.answers(topic, errors, answer),
        )
        for topic in request.topics
    ]
    return build.OffsetCommitResponse(topics=tuple(topics))


def _commit(request: Any, offsets: tuple[OffsetToCommit, ...], context: Context) -> CommitRequest:
    return CommitRequest(
        group=request.group_id,
        generation=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=_GROUP_INSTANCE_ID(request),
        retention_ms=_RETENTION_TIME(request),
        offsets=offsets,
        version=context.version,
    )
