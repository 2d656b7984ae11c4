"""What requests of the newer groups have in common: topics that a member names, partitions that it
is told, of streams groups tasks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from ottla.api.context import Context
from ottla.groups.consumer.requests import MAX_SUBSCRIBED_TOPICS
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices


def subscribed_topics(request: Any) -> frozenset[str] | None:
    """Of a heartbeat; None: as before. Raises ApiError (INVALID_REQUEST) for too many."""
    names = request.subscribed_topic_names
    if names is None:
        return None
    if len(names) > MAX_SUBSCRIBED_TOPICS:
        raise ApiError(
            ErrorCode.invalid_request,
            f"SubscribedTopicNames has {len(names):,} names; the maximum is"
            f" {MAX_SUBSCRIBED_TOPICS:,}.",
        )
    return frozenset(names)


async def assignment(
    partitions: Mapping[UUID, Collection[int]] | None, build: Any, slices: Slices
) -> Any:
    """For a heartbeat's response; None: as before."""
    if partitions is None:
        return None
    topics = []
    for topic_id, numbers in partitions.items():
        await slices.count(1 + len(numbers) // 100)
        topics.append(build.TopicPartitions(topic_id=topic_id, partitions=tuple(sorted(numbers))))
    return build.Assignment(topic_partitions=tuple(topics))


async def named_assignment(
    partitions: Mapping[UUID, Collection[int]], context: Context, slices: Slices
) -> Any:
    """For a description. Without topics that are gone: they have no name."""
    build, image = context.messages, context.broker.image
    topics = []
    for topic_id, numbers in partitions.items():
        await slices.count(1 + len(numbers) // 100)
        topic = image.topic_by_id(topic_id)
        if topic is not None:
            topics.append(
                build.TopicPartitions(
                    topic_id=topic_id, topic_name=topic.name, partitions=tuple(sorted(numbers))
                )
            )
    return build.Assignment(topic_partitions=tuple(topics))


async def task_ids(
    tasks: Mapping[str, Mapping[int, int] | frozenset[int]], build: Any, slices: Slices
) -> Any:
    """Of a streams group, by subtopology."""
    made = []
    for name in sorted(tasks):
        await slices.count(1 + len(tasks[name]) // 100)
        made.append(build.TaskIds(subtopology_id=name, partitions=tuple(sorted(tasks[name]))))
    return tuple(made)
