"""CreatePartitions (key 37): adds partitions to topics (KIP-195). v2: flexible."""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.api.time_limit import check_in_time
from ottla.controller.topics import MorePartitions, TopicResult, all_refused
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError

KEY: Final = 37
ACCESS: Final = (Access(Operation.ALTER, Resource.TOPIC),)


async def handle(request: Any, context: Context) -> Any:
    wanted = [
        MorePartitions(
            name=topic.name,
            count=topic.count,
            assignments=(
                None
                if topic.assignments is None
                else tuple(tuple(each.broker_ids) for each in topic.assignments)
            ),
        )
        for topic in request.topics
    ]
    results: tuple[TopicResult, ...]
    try:
        check_in_time(request.timeout)
        results = await context.broker.controller.add_partitions(
            wanted, validate_only=request.validate_only
        )
    except ApiError as error:
        results = all_refused(wanted, error)
    build = context.messages
    return build.CreatePartitionsResponse(
        results=tuple(
            build.CreatePartitionsTopicResult(
                name=result.name,
                error_code=result.outcome.code,
                error_message=result.outcome.message,
            )
            for result in results
        )
    )
