"""LeaveGroup (key 13): members leave their group.

v3 (KIP-345): many members, and static ones by their instance id, so that an administrator can
remove them. v4: flexible. v5 (KIP-800): a reason.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.groups.classic.requests import LeavingMember
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError
from ottla.protocol.versioned_field import VersionedField

KEY: Final = 13
ACCESS: Final = (Access(Operation.READ, Resource.GROUP),)

_MANY_MEMBERS: Final = 3

_REASON: Final = VersionedField[str | None](KEY, "MemberIdentity", "reason", None)


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    try:
        left = await context.broker.groups.leave(
            request.group_id, _leaving(request, context.version)
        )
    except ApiError as error:
        return build.LeaveGroupResponse(error_code=error.code)
    if context.version < _MANY_MEMBERS:
        return build.LeaveGroupResponse(error_code=left[0].error)
    return build.LeaveGroupResponse(
        members=tuple(
            build.MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=member.error,
            )
            for member in left
        )
    )


def _leaving(request: Any, version: int) -> tuple[LeavingMember, ...]:
    if version < _MANY_MEMBERS:
        return (LeavingMember(request.member_id, None),)
    return tuple(
        LeavingMember(member.member_id, member.group_instance_id, _REASON(member))
        for member in request.members
    )
