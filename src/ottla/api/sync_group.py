"""SyncGroup (key 14): a member asks for its assignment; the leader brings those of all.

v3 (KIP-345): static members. v4: flexible. v5 (KIP-559): protocol type and name, which must be
those that the group has chosen.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.groups.classic.requests import SyncRequest
from ottla.protocol.errors import ErrorCode

KEY: Final = 14

_NAMES_PROTOCOL: Final = 5


async def handle(request: Any, context: Context) -> Any:
    protocol_type = getattr(request, "protocol_type", None)
    protocol_name = getattr(request, "protocol_name", None)
    if context.version >= _NAMES_PROTOCOL and None in (protocol_type, protocol_name):
        return context.messages.SyncGroupResponse(error_code=ErrorCode.inconsistent_group_protocol)
    result = await context.broker.groups.sync(
        SyncRequest(
            token=None,
            group=request.group_id,
            generation=request.generation_id,
            member_id=request.member_id,
            group_instance_id=getattr(request, "group_instance_id", None),
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments={each.member_id: bytes(each.assignment) for each in request.assignments},
        )
    )
    return context.messages.SyncGroupResponse(
        error_code=result.error,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )
