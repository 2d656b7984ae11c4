"""TxnOffsetCommit (key 28): a producer commits a group's offsets in its transaction (KIP-98).

v2 (KIP-320): leader epochs. v3 (KIP-447): flexible; generation, member and group instance id, so
that the group fences former owners. v4 (KIP-890): the error TRANSACTION_ABORTABLE. v5 (KIP-890):
adds the group's partition of `__consumer_offsets` to the transaction, without AddOffsetsToTxn. v6
(KIP-1319): topic ids in place of names, and the errors of consumer groups' epochs.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from ottla.api.context import Context
from ottla.api.offsets_to_commit import OffsetsToCommit
from ottla.groups.offsets.commit import OffsetToCommit
from ottla.groups.offsets.transactional_commit import TransactionalCommitRequest
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.shards.step import ProducerEpoch

KEY: Final = 28
ACCESS: Final = (
    Access(Operation.WRITE, Resource.TRANSACTIONAL_ID),
    Access(Operation.READ, Resource.GROUP),
    Access(Operation.READ, Resource.TOPIC),
)

_KNOWS_LOADING: Final = 2
_TOPIC_IDS: Final = 6

_COMMITTED_LEADER_EPOCH: Final = VersionedField(
    KEY, "TxnOffsetCommitRequestPartition", "committed_leader_epoch", -1
)
_GENERATION: Final = VersionedField(KEY, "TxnOffsetCommitRequest", "generation_id", -1)
_MEMBER_EPOCH: Final = VersionedField(
    KEY, "TxnOffsetCommitRequest", "generation_id_or_member_epoch", -1
)
"""The same field since version 6."""
_MEMBER_ID: Final = VersionedField(KEY, "TxnOffsetCommitRequest", "member_id", "")
_GROUP_INSTANCE_ID: Final = VersionedField[str | None](
    KEY, "TxnOffsetCommitRequest", "group_instance_id", None
)
_TOPIC_NAME: Final = VersionedField(KEY, "TxnOffsetCommitRequestTopic", "name", "")
_TOPIC_ID: Final = VersionedField[UUID | None](KEY, "TxnOffsetCommitRequestTopic", "topic_id", None)


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
        lambda found: context.broker.groups.commit_in_transaction(_commit(request, found, context))
    )
    build, version = context.messages, context.version

    def answer(index: int, error: ErrorCode) -> Any:
        return build.TxnOffsetCommitResponsePartition(
            partition_index=index, error_code=_known(error, version)
        )

    topics = [
        build.TxnOffsetCommitResponseTopic(
            name=_TOPIC_NAME(topic),
            topic_id=_TOPIC_ID(topic),
            partitions=await offsets.answers(topic, errors, answer),
        )
        for topic in request.topics
    ]
    return build.TxnOffsetCommitResponse(topics=tuple(topics))


def _known(code: ErrorCode, version: int) -> ErrorCode:
    """Producers before version 2 end where a coordinator is loading (KAFKA-7296)."""
    if version < _KNOWS_LOADING and code is ErrorCode.coordinator_load_in_progress:
        return ErrorCode.coordinator_not_available
    return code


def _commit(
    request: Any, offsets: tuple[OffsetToCommit, ...], context: Context
) -> TransactionalCommitRequest:
    return TransactionalCommitRequest(
        group=request.group_id,
        transactional_id=request.transactional_id,
        producer=ProducerEpoch(request.producer_id, request.producer_epoch),
        generation=(_MEMBER_EPOCH if context.version >= _TOPIC_IDS else _GENERATION)(request),
        member_id=_MEMBER_ID(request),
        group_instance_id=_GROUP_INSTANCE_ID(request),
        offsets=offsets,
        version=context.version,
    )
