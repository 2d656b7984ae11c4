"""SyncGroup (key 14): a member requests its assignment; the leader sends those of all members.

v3 (KIP-345): static members. v4: flexible. v5 (KIP-559): protocol type and name, which must be
those of the group.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.groups.classic.requests import SyncRequest
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.runtime.slices import Slices, parts

KEY: Final = 14
ACCESS: Final = (Access(Operation.READ, Resource.GROUP),)
TAKES_TURNS: Final = True
"""All members of a group send it at the same time."""

_NAMES_PROTOCOL: Final = 5

_PROTOCOL_TYPE: Final = VersionedField[str | None](KEY, "SyncGroupRequest", "protocol_type", None)
_PROTOCOL_NAME: Final = VersionedField[str | None](KEY, "SyncGroupRequest", "protocol_name", None)
_GROUP_INSTANCE_ID: Final = VersionedField[str | None](
    KEY, "SyncGroupRequest", "group_instance_id", None
)


async def handle(request: Any, context: Context) -> Any:
    protocol_type = _PROTOCOL_TYPE(request)
    protocol_name = _PROTOCOL_NAME(request)
    if context.version >= _NAMES_PROTOCOL and None in (protocol_type, protocol_name):
        return context.messages.SyncGroupResponse(error_code=ErrorCode.inconsistent_group_protocol)
    slices = Slices()
    assignments: dict[str, bytes] = {}
    for some in parts(request.assignments):
        await slices.count(len(some))
        assignments.update((each.member_id, bytes(each.assignment)) for each in some)
    result = await context.broker.groups.sync(
        SyncRequest(
            token=None,
            group=request.group_id,
            generation=request.generation_id,
            member_id=request.member_id,
            group_instance_id=_GROUP_INSTANCE_ID(request),
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=assignments,
        )
    )
    return context.messages.SyncGroupResponse(
        error_code=result.error,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )
