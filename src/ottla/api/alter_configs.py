"""AlterConfigs (key 33): replaces all settings of a topic, group or broker.

Deprecated, and kept for old clients: settings that a request does not name return to their
defaults. v2: flexible.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ottla.api.context import Context
from ottla.controller.config_changes import (
    MAX_CHANGES,
    ConfigChange,
    ResourceChange,
    ResourceResult,
)
from ottla.controller.plan import refused
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError
from ottla.runtime.slices import Slices

KEY: Final = 33
ACCESS: Final = (
    Access(Operation.ALTER_CONFIGS, Resource.TOPIC),
    Access(Operation.ALTER_CONFIGS, Resource.GROUP),
    Access(Operation.ALTER_CONFIGS, Resource.CLUSTER),
)


async def handle(request: Any, context: Context) -> Any:
    answers = await altered(request, context, incremental=False)
    return context.messages.AlterConfigsResponse(responses=answers)


async def altered(request: Any, context: Context, *, incremental: bool) -> tuple[Any, ...]:
    """The outcome for each resource, in the form of both requests that alter settings."""
    slices = Slices()
    wanted: list[ResourceChange] = []
    for resource in request.resources:
        # One beyond the limit is enough for the refusal.
        configs = resource.configs[: MAX_CHANGES + 1]
        await slices.count(1 + len(configs) // 4)
        wanted.append(
            ResourceChange(
                kind=resource.resource_type,
                name=resource.resource_name,
                changes=tuple(
                    ConfigChange(each.name, each.value, each.config_operation)
                    if incremental
                    else ConfigChange(each.name, each.value)
                    for each in configs
                ),
            )
        )
    results: Iterable[ResourceResult]
    try:
        results = await context.broker.controller.alter_configs(
            wanted, incremental=incremental, validate_only=request.validate_only
        )
    except ApiError as error:
        outcome = refused(error)
        results = (ResourceResult(each.kind, each.name, outcome) for each in wanted)
    answers = []
    for result in results:
        await slices.count()
        answers.append(
            context.messages.AlterConfigsResourceResponse(
                error_code=result.outcome.code,
                error_message=result.outcome.message,
                resource_type=result.kind,
                resource_name=result.name,
            )
        )
    return tuple(answers)
