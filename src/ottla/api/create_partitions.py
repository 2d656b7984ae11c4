"""CreatePartitions (key 37): adds partitions to topics (KIP-195).

v2: flexible. v3: THROTTLING_QUOTA_EXCEEDED (KIP-599).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ottla.api.context import Context
from ottla.api.mutation_quota import MutationQuota
from ottla.api.time_limit import check_in_time
from ottla.controller.topics import MorePartitions, TopicResult, all_refused
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError
from ottla.runtime.slices import Slices

KEY: Final = 37
ACCESS: Final = (Access(Operation.ALTER, Resource.TOPIC),)


async def handle(request: Any, context: Context) -> Any:
    slices, quota = Slices(), MutationQuota(context, strict_since=3)
    wanted: list[MorePartitions] = []
    for topic in request.topics:
        await slices.count(1 + len(topic.assignments or ()))
        wanted.append(_wanted(topic))
    results: Iterable[TopicResult | None]
    try:
        check_in_time(request.timeout)
        results = await context.broker.controller.add_partitions(
            wanted, validate_only=request.validate_only, charge=quota.charge
        )
    except ApiError as error:
        results = all_refused(wanted, error)
    build, answers = context.messages, []
    for result in results:
        await slices.count()
        if result is not None:
            answers.append(
                build.CreatePartitionsTopicResult(
                    name=result.name,
                    error_code=result.outcome.code,
                    error_message=result.outcome.message,
                )
            )
    return quota.after(build.CreatePartitionsResponse(results=tuple(answers)))


def _wanted(topic: Any) -> MorePartitions:
    assignments = topic.assignments
    if assignments is not None:
        assignments = tuple(tuple(each.broker_ids) for each in assignments)
    return MorePartitions(name=topic.name, count=topic.count, assignments=assignments)
