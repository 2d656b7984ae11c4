"""DeleteTopics (key 20): deletes topics by name, from v6 by id too (KIP-516).

v3: TOPIC_DELETION_DISABLED is known. v4: flexible. v5: error messages,
THROTTLING_QUOTA_EXCEEDED (KIP-599).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ottla.api.context import Context
from ottla.api.mutation_quota import MutationQuota
from ottla.api.time_limit import check_in_time
from ottla.controller.deletion import NO_ID, DeletionResult, TopicToDelete
from ottla.controller.plan import Outcome, refused
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices

KEY: Final = 20
ACCESS: Final = (Access(Operation.DELETE, Resource.TOPIC),)


async def handle(request: Any, context: Context) -> Any:
    slices, quota = Slices(), MutationQuota(context, strict_since=5)
    topics = await _requested(request, context.version, slices)
    results: Iterable[DeletionResult]
    try:
        check_in_time(request.timeout)
        results = await context.broker.controller.delete_topics(topics, charge=quota.charge)
    except ApiError as error:
        outcome = refused(error)
        if error.code is ErrorCode.topic_deletion_disabled and context.version < 3:
            message = "This version does not support topic deletion."
            outcome = Outcome(ErrorCode.invalid_request, message)
        once: dict[TopicToDelete, None] = {}
        for each in topics:
            await slices.count()
            once[each] = None
        results = (DeletionResult(each.name, each.topic_id, outcome) for each in once)
    build, answers = context.messages, []
    for result in results:
        await slices.count()
        answers.append(
            build.DeletableTopicResult(
                # Only v6 can leave the name out.
                name=result.name if result.name is not None or context.version >= 6 else "",
                topic_id=result.topic_id,
                error_code=result.outcome.code,
                error_message=result.outcome.message,
            )
        )
    return quota.after(build.DeleteTopicsResponse(responses=tuple(answers)))


async def _requested(request: Any, version: int, slices: Slices) -> list[TopicToDelete]:
    requested: list[TopicToDelete] = []
    for topic in request.topic_names if version < 6 else request.topics:
        await slices.count()
        if version < 6:
            requested.append(TopicToDelete(name=topic))
            continue
        topic_id = None if topic.topic_id == NO_ID else topic.topic_id
        requested.append(TopicToDelete(name=topic.name, topic_id=topic_id))
    return requested
