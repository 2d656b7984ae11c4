"""OffsetDelete (key 47, KIP-496): deletes a group's offsets in topics that it no longer reads."""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices, parts

KEY: Final = 47
ACCESS: Final = (
    Access(Operation.DELETE, Resource.GROUP),
    Access(Operation.READ, Resource.TOPIC),
)


async def handle(request: Any, context: Context) -> Any:
    build, slices = context.messages, Slices()
    known = []
    for topic in request.topics:
        await slices.count()
        known.append((topic.name, await _known_partitions(topic, context, slices)))
    try:
        results = await context.broker.groups.delete_offsets(request.group_id, tuple(known))
    except ApiError as error:
        return build.OffsetDeleteResponse(error_code=error.code)
    topics = []
    for topic, (_, partitions), errors in zip(request.topics, known, results, strict=True):
        await slices.count()
        error_of = dict(zip(partitions, errors, strict=True))
        answers: list[Any] = []
        for some in parts(topic.partitions):
            await slices.count(len(some))
            answers += [
                build.OffsetDeleteResponsePartition(
                    partition_index=each.partition_index,
                    error_code=error_of.get(
                        each.partition_index, ErrorCode.unknown_topic_or_partition
                    ),
                )
                for each in some
            ]
        topics.append(build.OffsetDeleteResponseTopic(name=topic.name, partitions=tuple(answers)))
    return build.OffsetDeleteResponse(topics=tuple(topics))


async def _known_partitions(topic: Any, context: Context, slices: Slices) -> tuple[int, ...]:
    """Each partition that exists, once."""
    topic_image = context.broker.image.topic(topic.name)
    count = 0 if topic_image is None else len(topic_image.partitions)
    found: dict[int, None] = {}
    for some in parts(topic.partitions):
        await slices.count(len(some))
        for each in some:
            if 0 <= each.partition_index < count:
                found[each.partition_index] = None
    return tuple(found)
