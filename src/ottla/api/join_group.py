"""JoinGroup (key 11): a member requests to join the next generation of its group.

v1: a separate rebalance timeout. v4 (KIP-394): MEMBER_ID_REQUIRED. v5 (KIP-345): static
members. v6: flexible. v7 (KIP-559): protocol type and a nullable protocol in the response.
v8 (KIP-800): a reason. v9 (KIP-814): skip_assignment.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.groups.classic.requests import MAX_PROTOCOLS, JoinRequest, JoinResult
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.runtime.slices import Slices, parts

KEY: Final = 11
ACCESS: Final = (Access(Operation.READ, Resource.GROUP),)
TAKES_TURNS: Final = True
"""All members of a group send it at the same time."""

_REQUIRES_MEMBER_ID: Final = 4
_NULLABLE_PROTOCOL: Final = 7
_SKIPS_ASSIGNMENT: Final = 9

_REASON: Final = VersionedField[str | None](KEY, "JoinGroupRequest", "reason", None)
_GROUP_INSTANCE_ID: Final = VersionedField[str | None](
    KEY, "JoinGroupRequest", "group_instance_id", None
)
_REBALANCE_TIMEOUT: Final = VersionedField[int | None](
    KEY, "JoinGroupRequest", "rebalance_timeout", None
)


async def handle(request: Any, context: Context) -> Any:
    if len(request.protocols) > MAX_PROTOCOLS:
        result = JoinResult(ErrorCode.invalid_request, request.member_id)
    else:
        result = await _join(request, context)
    build, slices = context.messages, Slices()
    nullable = context.version >= _NULLABLE_PROTOCOL
    members: list[Any] = []
    for some in parts(result.members):
        await slices.count(len(some))
        members += [
            build.JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata,
            )
            for member in some
        ]
    return build.JoinGroupResponse(
        error_code=result.error,
        generation_id=result.generation,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name if nullable else result.protocol_name or "",
        leader=result.leader,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=tuple(members),
    )


async def _join(request: Any, context: Context) -> JoinResult:
    return await context.broker.groups.join(
        JoinRequest(
            token=None,
            group=request.group_id,
            member_id=request.member_id,
            group_instance_id=_GROUP_INSTANCE_ID(request),
            new_member_id="",
            client_id=context.client_id,
            client_host=context.session.address,
            session_timeout_ms=request.session_timeout,
            rebalance_timeout_ms=_rebalance_timeout_ms(request),
            protocol_type=request.protocol_type,
            protocols=tuple((each.name, bytes(each.metadata)) for each in request.protocols),
            requires_known_member_id=context.version >= _REQUIRES_MEMBER_ID,
            supports_skip_assignment=context.version >= _SKIPS_ASSIGNMENT,
            reason=_REASON(request) or "",
        )
    )


def _rebalance_timeout_ms(request: Any) -> int:
    """Before v1 it was the session timeout."""
    timeout_ms = _REBALANCE_TIMEOUT(request)
    if timeout_ms is None:
        timeout_ms = request.session_timeout
    return timeout_ms
