"""ListGroups (key 16): the groups that this broker coordinates.

v3: flexible. v4 (KIP-518): filter by state, and the state in the response. v5 (KIP-848): filter by
type, and the type in the response.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError
from ottla.protocol.versioned_field import VersionedField

KEY: Final = 16
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.GROUP),)

_STATES_FILTER: Final = VersionedField[tuple[str, ...]](
    KEY, "ListGroupsRequest", "states_filter", ()
)
_TYPES_FILTER: Final = VersionedField[tuple[str, ...]](KEY, "ListGroupsRequest", "types_filter", ())


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    try:
        found = await context.broker.groups.list_groups(
            _lower(_STATES_FILTER(request)),
            _lower(_TYPES_FILTER(request)),
        )
    except ApiError as error:
        return build.ListGroupsResponse(error_code=error.code)
    return build.ListGroupsResponse(
        groups=tuple(
            build.ListedGroup(
                group_id=group.group,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=group.type,
            )
            for group in found
        )
    )


def _lower(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name.strip().lower() for name in names)
