"""OffsetForLeaderEpoch (key 23): the end of an epoch in the leader's log (KIP-101, KIP-320).

v2: the caller's leader epoch. v3: replica id. v4: flexible. A consumer sends it after a change of
leader, to detect whether the log it read from was truncated.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.broker_requests import is_from_broker, refused
from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError
from ottla.protocol.versioned_field import VersionedField
from ottla.runtime.slices import Slices

KEY: Final = 23
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.TOPIC),)

_REPLICA_ID: Final = VersionedField(KEY, "OffsetForLeaderEpochRequest", "replica_id", -1)


async def handle(request: Any, context: Context) -> Any:
    if is_between_brokers(request) and not is_from_broker(context, _REPLICA_ID(request)):
        return await refused(request, context)
    build = context.messages
    topics, slices = [], Slices()
    for topic in request.topics:
        answers = []
        for each in topic.partitions:
            await slices.count()
            try:
                partition = context.broker.partitions.find(topic.topic, each.partition)
                partition.check_leads()
                partition.check_leader_epoch(each.current_leader_epoch)
                epoch, end_offset = partition.reader.end_of_epoch(each.leader_epoch)
            except ApiError as error:
                answer = build.EpochEndOffset(
                    partition=each.partition, error_code=error.code, leader_epoch=-1, end_offset=-1
                )
            else:
                answer = build.EpochEndOffset(
                    partition=each.partition, leader_epoch=epoch, end_offset=end_offset
                )
            answers.append(answer)
        topics.append(
            build.OffsetForLeaderTopicResult(topic=topic.topic, partitions=tuple(answers))
        )
    return build.OffsetForLeaderEpochResponse(topics=tuple(topics))


def is_between_brokers(request: Any) -> bool:
    """Whether a replica asks its leader."""
    return _REPLICA_ID(request) >= 0
