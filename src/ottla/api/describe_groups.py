"""DescribeGroups (key 15): state and members of groups; the clients' bytes are returned unchanged.

v3 (KIP-430): authorized operations. v4 (KIP-345): instance ids. v5: flexible. v6 (KIP-1043):
GROUP_ID_NOT_FOUND; before v6 an unknown group has the state Dead, and so has one of KIP-848, which
ConsumerGroupDescribe describes.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.groups.classic.requests import DescribedGroup
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.runtime.slices import Slices

KEY: Final = 15
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.GROUP),)

_GROUP_ID_NOT_FOUND: Final = 6
NOT_REQUESTED: Final = -(2**31)
_OPERATIONS_OF_GROUPS: Final = (3, 6, 8, 10, 11)
"""The operations on a group: read, delete, describe, describe and alter configs."""
ALL_OPERATIONS: Final = sum(1 << operation for operation in _OPERATIONS_OF_GROUPS)

_INCLUDE_AUTHORIZED_OPERATIONS: Final = VersionedField(
    KEY, "DescribeGroupsRequest", "include_authorized_operations", False
)


async def handle(request: Any, context: Context) -> Any:
    """Each group once: a short request that repeats a large one would get gigabytes."""
    described: dict[str, Any] = {}
    slices = Slices()
    for group in request.groups:
        await slices.count()
        if group not in described:
            described[group] = await _described(group, request, context)
    return context.messages.DescribeGroupsResponse(groups=tuple(described.values()))


async def _described(group_id: str, request: Any, context: Context) -> Any:
    build = context.messages
    try:
        group = await context.broker.groups.describe(group_id)
    except ApiError as error:
        return build.DescribedGroup(
            error_code=error.code, group_id=group_id, authorized_operations=NOT_REQUESTED
        )
    code, message = _error(group, context.version)
    requested = _INCLUDE_AUTHORIZED_OPERATIONS(request)
    return build.DescribedGroup(
        error_code=code,
        error_message=message,
        group_id=group.group,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol,
        members=tuple(
            build.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in group.members
        ),
        authorized_operations=(
            ALL_OPERATIONS if requested and code is ErrorCode.none else NOT_REQUESTED
        ),
    )


def _error(group: DescribedGroup, version: int) -> tuple[ErrorCode, str | None]:
    if not group.reason or version < _GROUP_ID_NOT_FOUND:
        return ErrorCode.none, None
    return ErrorCode.group_id_not_found, group.reason
