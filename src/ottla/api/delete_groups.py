"""DeleteGroups (key 42, KIP-229): deletes empty groups and their offsets. v2: flexible.

v3 (Apache Kafka 4.4): why a group could not be deleted, where its code does not say it.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError
from ottla.runtime.slices import Slices

KEY: Final = 42
ACCESS: Final = (Access(Operation.DELETE, Resource.GROUP),)


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    results, slices = [], Slices()
    for group in dict.fromkeys(request.groups_names):
        await slices.count()
        message = None
        try:
            error = await context.broker.groups.delete_group(group)
        except ApiError as refused:
            error, message = refused.code, refused.message
        results.append(
            build.DeletableGroupResult(group_id=group, error_code=error, error_message=message)
        )
    return build.DeleteGroupsResponse(results=tuple(results))
