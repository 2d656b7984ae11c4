"""DeleteRecords (key 21): moves the log start of partitions up to an offset (KIP-107).

v2: flexible. Offset -1 means the high watermark. The response's low watermark is the new start.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import INTERNAL_TOPICS
from ottla.replica.partition import Partition
from ottla.runtime.slices import Slices
from ottla.runtime.waiting import Waiter

KEY: Final = 21
ACCESS: Final = (Access(Operation.DELETE, Resource.TOPIC),)

_NO_LOW_WATERMARK: Final = -1


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    until_ms = context.broker.clock.monotonic_ms() + request.timeout
    started: dict[tuple[str, int], int | ApiError] = {}
    slices = Slices()
    for topic in request.topics:
        for each in topic.partitions:
            await slices.count()
            try:
                partition = context.broker.partitions.find(topic.name, each.partition_index)
                if topic.name in INTERNAL_TOPICS:
                    raise ApiError(ErrorCode.invalid_topic_exception)
                started[topic.name, each.partition_index] = partition.delete_before(each.offset)
            except ApiError as error:
                started[topic.name, each.partition_index] = error
    topics = []
    for topic in request.topics:
        answers = []
        for each in topic.partitions:
            await slices.count()
            try:
                start = started[topic.name, each.partition_index]
                if isinstance(start, ApiError):
                    raise start
                partition = context.broker.partitions.find(topic.name, each.partition_index)
                low_watermark = await _deleted(partition, start, until_ms, context)
            except ApiError as error:
                answer = build.DeleteRecordsPartitionResult(
                    partition_index=each.partition_index,
                    low_watermark=_NO_LOW_WATERMARK,
                    error_code=error.code,
                )
            else:
                answer = build.DeleteRecordsPartitionResult(
                    partition_index=each.partition_index, low_watermark=low_watermark
                )
            answers.append(answer)
        topics.append(build.DeleteRecordsTopicResult(name=topic.name, partitions=tuple(answers)))
    return build.DeleteRecordsResponse(topics=tuple(topics))


async def _deleted(partition: Partition, start: int, until_ms: int, context: Context) -> int:
    """The low watermark, once the logs of all live replicas start there (DelayedDeleteRecords).

    Raises ApiError: REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER.
    """
    while (low_watermark := partition.low_watermark) < start:
        left_ms = until_ms - context.broker.clock.monotonic_ms()
        if left_ms <= 0 or context.broker.closing:
            raise ApiError(ErrorCode.request_timed_out)
        await Waiter([partition]).wait(left_ms)
    return low_watermark
