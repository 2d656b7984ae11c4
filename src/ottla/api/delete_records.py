"""DeleteRecords (key 21): moves the start of partitions up to an offset (KIP-107).

v2: flexible. Offset -1 stands for the high watermark. The answer's low watermark is the new start.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.broker.call import Call
from ottla.protocol.errors import ApiError

KEY: Final = 21

_NO_LOW_WATERMARK: Final = -1


async def handle(request: Any, call: Call) -> Any:
    build = call.messages
    topics = []
    for topic in request.topics:
        answers = []
        for each in topic.partitions:
            try:
                partition = call.node.partitions.find(topic.name, each.partition_index)
                low_watermark = partition.delete_before(each.offset)
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
