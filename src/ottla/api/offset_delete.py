"""OffsetDelete (key 47, KIP-496): deletes a group's offsets in topics that it no longer reads."""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode

KEY: Final = 47
ACCESS: Final = (
    Access(Operation.DELETE, Resource.GROUP),
    Access(Operation.READ, Resource.TOPIC),
)


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    known = tuple((topic.name, _known_partitions(topic, context)) for topic in request.topics)
    try:
        results = await context.broker.groups.delete_offsets(request.group_id, known)
    except ApiError as error:
        return build.OffsetDeleteResponse(error_code=error.code)
    topics = []
    for topic, (_, partitions), errors in zip(request.topics, known, results, strict=True):
        error_of = dict(zip(partitions, errors, strict=True))
        topics.append(
            build.OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=tuple(
                    build.OffsetDeleteResponsePartition(
                        partition_index=each.partition_index,
                        error_code=error_of.get(
                            each.partition_index, ErrorCode.unknown_topic_or_partition
                        ),
                    )
                    for each in topic.partitions
                ),
            )
        )
    return build.OffsetDeleteResponse(topics=tuple(topics))


def _known_partitions(topic: Any, context: Context) -> tuple[int, ...]:
    known = context.broker.image.topic(topic.name)
    count = 0 if known is None else len(known.partitions)
    return tuple(
        dict.fromkeys(
            each.partition_index for each in topic.partitions if 0 <= each.partition_index < count
        )
    )
