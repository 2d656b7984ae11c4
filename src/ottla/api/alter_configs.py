"""AlterConfigs (key 33): replaces all settings of a topic or broker.

Deprecated, and kept for old clients: settings that a request does not name return to their
defaults. v2: flexible.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.controller.config_changes import ConfigChange, ResourceChange, ResourceResult
from ottla.controller.plan import refused
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError

KEY: Final = 33
ACCESS: Final = (
    Access(Operation.ALTER_CONFIGS, Resource.TOPIC),
    Access(Operation.ALTER_CONFIGS, Resource.CLUSTER),
)


async def handle(request: Any, context: Context) -> Any:
    wanted = [
        ResourceChange(
            kind=resource.resource_type,
            name=resource.resource_name,
            changes=tuple(ConfigChange(each.name, each.value) for each in resource.configs),
        )
        for resource in request.resources
    ]
    results = await altered(wanted, request, context, incremental=False)
    return context.messages.AlterConfigsResponse(responses=answers(results, context))


async def altered(
    wanted: list[ResourceChange], request: Any, context: Context, *, incremental: bool
) -> tuple[ResourceResult, ...]:
    """The outcome for each resource."""
    results: tuple[ResourceResult, ...]
    try:
        results = await context.broker.controller.alter_configs(
            wanted, incremental=incremental, validate_only=request.validate_only
        )
    except ApiError as error:
        outcome = refused(error)
        results = tuple(ResourceResult(each.kind, each.name, outcome) for each in wanted)
    return results


def answers(results: tuple[ResourceResult, ...], context: Context) -> tuple[Any, ...]:
    """The outcomes in the form of both requests that alter settings."""
    return tuple(
        context.messages.AlterConfigsResourceResponse(
            error_code=result.outcome.code,
            error_message=result.outcome.message,
            resource_type=result.kind,
            resource_name=result.name,
        )
        for result in results
    )
