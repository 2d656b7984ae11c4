"""DescribeClientQuotas (key 48): the quotas of users, client ids and addresses (KIP-546).

v1: flexible.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.controller.quotas import NameFilter, all_quotas, check_filter, matches
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.quotas.entity import Entity, Kind
from ottla.runtime.slices import Slices

KEY: Final = 48
ACCESS: Final = (Access(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER),)


async def handle(request: Any, context: Context) -> Any:
    build, slices = context.messages, Slices()
    wanted: list[NameFilter] = []
    for each in request.components:
        await slices.count()
        wanted.append(NameFilter(each.entity_type, each.match_type, each.match))
    try:
        check_filter(wanted)
    except ApiError as error:
        return build.DescribeClientQuotasResponse(
            error_code=error.code, error_message=error.message, entries=None
        )
    entries: list[Any] = []
    for found in list(all_quotas(context.broker.image)):
        await slices.count()
        if found is not None and matches(found[0], wanted, strict=request.strict):
            entries.append(_entry(*found, context))
    return build.DescribeClientQuotasResponse(
        error_code=ErrorCode.none, error_message=None, entries=tuple(entries)
    )


def _entry(entity: Entity, quotas: dict[Kind, float], context: Context) -> Any:
    build = context.messages
    return build.EntryData(
        entity=tuple(
            build.EntityData(entity_type=type, entity_name=name or None)
            for type, name in entity.names().items()
        ),
        values=tuple(
            build.ValueData(key=kind.value, value=value) for kind, value in quotas.items()
        ),
    )
