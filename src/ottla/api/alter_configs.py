"""AlterConfigs (key 33): replaces all settings of a topic, group or broker.

Deprecated, and kept for old clients: settings that a request does not name return to their
defaults. v2: flexible.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ottla.api.context import Context
from ottla.config import ConfigError
from ottla.controller.config_changes import (
    MAX_CHANGES,
    ConfigChange,
    ResourceChange,
    ResourceResult,
    ResourceType,
    changed_broker_values,
)
from ottla.controller.plan import Outcome, refused
from ottla.protocol.access import CLUSTER_NAME, Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
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


async def check_here(request: Any, context: Context) -> Any:
    """See `Handler.check_here`."""
    answers = await refused_here(request, context, incremental=False)
    return answers and context.messages.AlterConfigsResponse(responses=answers)


async def refused_here(request: Any, context: Context, *, incremental: bool) -> tuple[Any, ...]:
    """Answers with an error if this broker cannot take its own changed settings; else empty.

    Only this broker has the files with certificates and its static settings: so, as in Kafka's
    ConfigAdminManager.preprocess, it checks them before the controller does. Clients send the
    changes of a broker to that broker, alone.
    """
    own = str(context.broker.config.id)
    mine = [
        each
        for each in request.resources
        if each.resource_type == ResourceType.BROKER and each.resource_name == own
    ]
    if len(mine) != 1 or not _may_alter(context):
        return ()
    ((resource, wanted),) = zip(mine, await _wanted(mine, incremental, Slices()), strict=True)
    try:
        values = changed_broker_values(wanted, context.broker.image, incremental=incremental)
        await context.broker.check_listeners(values, reads_again=not request.validate_only)
    except ApiError:
        return ()  # the controller says so
    except ConfigError as error:
        outcome = Outcome(ErrorCode.invalid_request, str(error))
    else:
        return ()
    skipped = Outcome(ErrorCode.operation_not_attempted, f"broker {own} refuses its settings")
    return tuple(
        _answer(context, each.resource_type, each.resource_name, said)
        for each in request.resources
        for said in (outcome if each is resource else skipped,)
    )


def _may_alter(context: Context) -> bool:
    """Whether the client may change a broker's settings: else it learns nothing of its files."""
    authorization = context.broker.authorization
    return authorization is None or authorization.allows(
        context.session, Operation.ALTER_CONFIGS, Resource.CLUSTER, CLUSTER_NAME, log=False
    )


def _answer(context: Context, kind: int, name: str, outcome: Outcome) -> Any:
    return context.messages.AlterConfigsResourceResponse(
        error_code=outcome.code,
        error_message=outcome.message,
        resource_type=kind,
        resource_name=name,
    )


async def _wanted(resources: Any, incremental: bool, slices: Slices) -> list[ResourceChange]:
    wanted: list[ResourceChange] = []
    for resource in resources:
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
    return wanted


async def altered(request: Any, context: Context, *, incremental: bool) -> tuple[Any, ...]:
    """The outcome for each resource, in the form of both requests that alter settings."""
    refusals = await refused_here(request, context, incremental=incremental)
    if refusals:
        return refusals
    slices = Slices()
    wanted = await _wanted(request.resources, incremental, slices)
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
        answers.append(_answer(context, result.kind, result.name, result.outcome))
    return tuple(answers)
