"""ShareGroupDescribe (key 77, KIP-932): state and members of share groups. v1 is the first."""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.api.describe_groups import ALL_OPERATIONS, NOT_REQUESTED
from ottla.api.group_assignments import named_assignment
from ottla.api.share_group_heartbeat import is_enabled
from ottla.groups.share.member import Member
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices

KEY: Final = 77
ACCESS: Final = (
    Access(Operation.DESCRIBE, Resource.GROUP),
    Access(Operation.DESCRIBE, Resource.TOPIC),
)


async def handle(request: Any, context: Context) -> Any:
    """Each group once: a short request that repeats a large one would get gigabytes."""
    described: dict[str, Any] = {}
    slices = Slices()
    for group in request.group_ids:
        await slices.count()
        if group not in described:
            described[group] = await _described(group, request, context, slices)
    return context.messages.ShareGroupDescribeResponse(groups=tuple(described.values()))


async def _described(group_id: str, request: Any, context: Context, slices: Slices) -> Any:
    build = context.messages
    try:
        if not is_enabled(context):
            raise ApiError(ErrorCode.unsupported_version)
        group = await context.broker.groups.share.describe(group_id)
    except ApiError as error:
        return build.DescribedGroup(
            error_code=error.code,
            error_message=error.message or None,
            group_id=group_id,
            authorized_operations=NOT_REQUESTED,
        )
    members = []
    for member in group.members:
        await slices.count()
        members.append(await _member(member, context, slices))
    requested = request.include_authorized_operations
    return build.DescribedGroup(
        group_id=group.group,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=tuple(members),
        authorized_operations=ALL_OPERATIONS if requested else NOT_REQUESTED,
    )


async def _member(member: Member, context: Context, slices: Slices) -> Any:
    return context.messages.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscribed_topics)),
        assignment=await named_assignment(member.assigned, context, slices),
    )
