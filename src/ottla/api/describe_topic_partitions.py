"""DescribeTopicPartitions (key 75): topics and partitions, page by page (KIP-966).

Topics are sorted by name. A full page ends with a cursor: the start of the next page. A partition
whose leader this client cannot reach has no error here: its leader is -1
(KRaftMetadataCache.describeTopicResponse).
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.api.metadata import TOPIC_OPERATIONS, reachable_brokers
from ottla.controller.image import NO_LEADER, TopicImage
from ottla.controller.naming import check_topic_name
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import INTERNAL_TOPICS

KEY: Final = 75
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.TOPIC),)


async def handle(request: Any, context: Context) -> Any:
    build, cursor = context.messages, request.cursor
    requested = {topic.name for topic in request.topics}
    begin = "" if cursor is None else cursor.topic_name
    names = sorted(name for name in requested or context.broker.image.topics if name >= begin)
    if cursor is not None and (
        cursor.partition_index < 0 or (requested and cursor.topic_name not in requested)
    ):
        return build.DescribeTopicPartitionsResponse(
            topics=tuple(
                _refusal(name, ErrorCode.invalid_request, context) for name in sorted(requested)
            )
        )
    limit = context.broker.config.max_request_partition_size_limit
    room = max(min(limit, request.response_partition_limit), 1)
    answers: list[Any] = []
    next_cursor = None
    for name in names:
        if room == 0:
            next_cursor = build.Cursor(topic_name=name, partition_index=0)
            break
        topic = context.broker.image.topic(name)
        if topic is None:
            answers.append(_refusal(name, _missing_code(name), context))
            continue
        first = cursor.partition_index if cursor is not None and name == begin else 0
        end = min(len(topic.partitions), first + room)
        answers.append(_topic(topic, first, end, context))
        room -= max(end - first, 0)
        if end < len(topic.partitions):
            next_cursor = build.Cursor(topic_name=name, partition_index=end)
            break
    return build.DescribeTopicPartitionsResponse(topics=tuple(answers), next_cursor=next_cursor)


def _missing_code(name: str) -> ErrorCode:
    try:
        check_topic_name(name)
    except ApiError as error:
        return error.code
    return ErrorCode.unknown_topic_or_partition


def _refusal(name: str, code: ErrorCode, context: Context) -> Any:
    return context.messages.DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _topic(topic: TopicImage, first: int, end: int, context: Context) -> Any:
    build = context.messages
    reachable = reachable_brokers(context)
    partitions: list[Any] = []
    for index in range(first, end):
        state = topic.partitions[index]
        partitions.append(
            build.DescribeTopicPartitionsResponsePartition(
                error_code=ErrorCode.none,
                partition_index=index,
                leader_id=state.leader if state.leader in reachable.endpoints else NO_LEADER,
                leader_epoch=state.leader_epoch,
                replica_nodes=state.replicas,
                isr_nodes=state.isr,
                eligible_leader_replicas=(),
                last_known_elr=(),
                offline_replicas=reachable.offline(state.replicas),
            )
        )
    return build.DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(partitions),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )
