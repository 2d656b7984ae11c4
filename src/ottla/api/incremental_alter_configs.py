"""IncrementalAlterConfigs (key 44): sets, deletes, appends to and subtracts from single settings
of topics and brokers (KIP-339). v1: flexible."""

from __future__ import annotations

from typing import Any, Final

from ottla.api.alter_configs import altered, answers
from ottla.api.context import Context
from ottla.controller.config_changes import ConfigChange, ResourceChange
from ottla.protocol.access import Access, Operation, Resource

KEY: Final = 44
ACCESS: Final = (
    Access(Operation.ALTER_CONFIGS, Resource.TOPIC),
    Access(Operation.ALTER_CONFIGS, Resource.CLUSTER),
)


async def handle(request: Any, context: Context) -> Any:
    wanted = [
        ResourceChange(
            kind=resource.resource_type,
            name=resource.resource_name,
            changes=tuple(
                ConfigChange(each.name, each.value, each.config_operation)
                for each in resource.configs
            ),
        )
        for resource in request.resources
    ]
    results = await altered(wanted, request, context, incremental=True)
    return context.messages.IncrementalAlterConfigsResponse(responses=answers(results, context))
