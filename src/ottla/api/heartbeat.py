"""Heartbeat (key 12): a member is alive, and learns whether it must rejoin.

v3 (KIP-345): static members. v4: flexible.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.groups.classic.requests import HeartbeatRequest
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.versioned_field import VersionedField

KEY: Final = 12
ACCESS: Final = (Access(Operation.READ, Resource.GROUP),)

_GROUP_INSTANCE_ID: Final = VersionedField[str | None](
    KEY, "HeartbeatRequest", "group_instance_id", None
)


async def handle(request: Any, context: Context) -> Any:
    error = await context.broker.groups.heartbeat(
        HeartbeatRequest(
            request.group_id,
            request.generation_id,
            request.member_id,
            _GROUP_INSTANCE_ID(request),
        )
    )
    return context.messages.HeartbeatResponse(error_code=error)
