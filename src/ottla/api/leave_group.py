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
from ottla.runtime.slices import Slices, parts

KEY: Final = 13
ACCESS: Final = (Access(Operation.READ, Resource.GROUP),)

_MANY_MEMBERS: Final = 3

_REASON: Final = VersionedField[str | None](KEY, "MemberIdentity", "reason", None)


async def handle(request: Any, context: Context) -> Any:
    build, slices = context.messages, Slices()
    try:
        left = await context.broker.groups.leave(
            request.group_id, await _leaving(request, context.version, slices)
        )
    except ApiError as error:
        return build.LeaveGroupResponse(error_code=error.code)
    if context.version < _MANY_MEMBERS:
        return build.LeaveGroupResponse(error_code=left[0].error)
    members: list[Any] = []
    for some in parts(left):
        await slices.count(len(some))
        members += [
            build.MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=member.error,
            )
            for member in some
        ]
    return build.LeaveGroupResponse(members=tuple(members))


async def _leaving(request: Any, version: int, slices: Slices) -> tuple[LeavingMember, ...]:
    if version < _MANY_MEMBERS:
        return (LeavingMember(request.member_id, None),)
    leaving: list[LeavingMember] = []
    for some in parts(request.members):
        await slices.count(len(some))
        leaving += [
            LeavingMember(member.member_id, member.group_instance_id, _REASON(member))
            for member in some
        ]
    return tuple(leaving)
