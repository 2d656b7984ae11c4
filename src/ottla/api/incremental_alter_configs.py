"""IncrementalAlterConfigs (key 44): sets, deletes, appends to and subtracts from single settings
of topics, groups and brokers (KIP-339). v1: flexible."""

from __future__ import annotations

from typing import Any, Final

from ottla.api.alter_configs import altered, refused_here
from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource

KEY: Final = 44
ACCESS: Final = (
    Access(Operation.ALTER_CONFIGS, Resource.TOPIC),
    Access(Operation.ALTER_CONFIGS, Resource.GROUP),
    Access(Operation.ALTER_CONFIGS, Resource.CLUSTER),
)


async def handle(request: Any, context: Context) -> Any:
    answers = await altered(request, context, incremental=True)
    return context.messages.IncrementalAlterConfigsResponse(responses=answers)


async def check_here(request: Any, context: Context) -> Any:
    """See `Handler.check_here`."""
    answers = await refused_here(request, context, incremental=True)
    return answers and context.messages.IncrementalAlterConfigsResponse(responses=answers)
