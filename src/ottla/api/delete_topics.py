"""DeleteTopics (key 20): deletes topics by name, from v6 by id too (KIP-516).

v3: TOPIC_DELETION_DISABLED is known. v4: flexible. v5: error messages (KIP-599).
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.api.time_limit import check_in_time
from ottla.controller.deletion import NO_ID, DeletionResult, TopicToDelete
from ottla.controller.plan import Outcome, refused
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode

KEY: Final = 20
ACCESS: Final = (Access(Operation.DELETE, Resource.TOPIC),)


async def handle(request: Any, context: Context) -> Any:
    topics = _requested(request, context.version)
    results: tuple[DeletionResult, ...]
    try:
        check_in_time(request.timeout)
        results = await context.broker.controller.delete_topics(topics)
    except ApiError as error:
        outcome = refused(error)
        if error.code is ErrorCode.topic_deletion_disabled and context.version < 3:
            message = "This version does not support topic deletion."
            outcome = Outcome(ErrorCode.invalid_request, message)
        results = tuple(
            DeletionResult(each.name, each.topic_id, outcome) for each in dict.fromkeys(topics)
        )
    build = context.messages
    return build.DeleteTopicsResponse(
        responses=tuple(
            build.DeletableTopicResult(
                # Only v6 can leave the name out.
                name=result.name if result.name is not None or context.version >= 6 else "",
                topic_id=result.topic_id,
                error_code=result.outcome.code,
                error_message=result.outcome.message,
            )
            for result in results
        )
    )


def _requested(request: Any, version: int) -> list[TopicToDelete]:
    if version < 6:
        return [TopicToDelete(name=name) for name in request.topic_names]
    return [
        TopicToDelete(name=topic.name, topic_id=None if topic.topic_id == NO_ID else topic.topic_id)
        for topic in request.topics
    ]
