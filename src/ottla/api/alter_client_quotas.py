"""AlterClientQuotas (key 49): sets and removes quotas of users, client ids and addresses (KIP-546).

v1: flexible.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.controller.plan import refused
from ottla.controller.quotas import QuotaChange, QuotaOutcome
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError
from ottla.runtime.slices import Slices

KEY: Final = 49
ACCESS: Final = (Access(Operation.ALTER_CONFIGS, Resource.CLUSTER),)


async def handle(request: Any, context: Context) -> Any:
    slices = Slices()
    changes: list[QuotaChange] = []
    for each in request.entries:
        await slices.count(1 + len(each.entity) + len(each.ops))
        changes.append(_change(each))
    answers: list[Any] = []
    for entity, outcome in await _altered(changes, request.validate_only, context):
        await slices.count()
        answers.append(
            context.messages.EntryData(
                error_code=outcome.code,
                error_message=outcome.message,
                entity=tuple(
                    context.messages.EntityData(entity_type=type, entity_name=name)
                    for type, name in entity
                ),
            )
        )
    return context.messages.AlterClientQuotasResponse(entries=tuple(answers))


def _change(entry: Any) -> QuotaChange:
    return QuotaChange(
        tuple((each.entity_type, each.entity_name) for each in entry.entity),
        tuple((each.key, None if each.remove else each.value) for each in entry.ops),
    )


async def _altered(
    changes: list[QuotaChange], validate_only: bool, context: Context
) -> tuple[QuotaOutcome, ...]:
    try:
        return await context.broker.controller.alter_quotas(changes, validate_only=validate_only)
    except ApiError as error:
        entities = dict.fromkeys([each.entity for each in changes])
        return tuple(QuotaOutcome(entity, refused(error)) for entity in entities)
