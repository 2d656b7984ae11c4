"""ConsumerGroupDescribe (key 69, KIP-848): state and members of groups of the consumer protocol.

v1: whether a member speaks that protocol or the classic one.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.consumer_group_heartbeat import is_enabled
from ottla.api.context import Context
from ottla.api.describe_groups import ALL_OPERATIONS, NOT_REQUESTED
from ottla.api.group_assignments import named_assignment
from ottla.groups.consumer.describe import DescribedConsumerGroup, DescribedMember
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices

KEY: Final = 69
ACCESS: Final = (
    Access(Operation.DESCRIBE, Resource.GROUP),
    Access(Operation.DESCRIBE, Resource.TOPIC),
)

_CLASSIC_TYPE: Final = 0
_CONSUMER_TYPE: Final = 1
_MEMBER_TYPE: Final = 1
"""The first version that says it."""


async def handle(request: Any, context: Context) -> Any:
    """Each group once: a short request that repeats a large one would get gigabytes."""
    described: dict[str, Any] = {}
    slices = Slices()
    for group in request.group_ids:
        await slices.count()
        if group not in described:
            described[group] = await _described(group, request, context, slices)
    return context.messages.ConsumerGroupDescribeResponse(groups=tuple(described.values()))


async def _described(group_id: str, request: Any, context: Context, slices: Slices) -> Any:
    build = context.messages
    try:
        if not is_enabled(context):
            raise ApiError(ErrorCode.unsupported_version)
        group = await context.broker.groups.describe_consumer_group(group_id)
    except ApiError as error:
        return build.DescribedGroup(
            error_code=error.code,
            error_message=error.message or None,
            group_id=group_id,
            authorized_operations=NOT_REQUESTED,
        )
    requested = request.include_authorized_operations
    return build.DescribedGroup(
        group_id=group.group,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=await _members(group, context, slices),
        authorized_operations=ALL_OPERATIONS if requested else NOT_REQUESTED,
    )


async def _members(
    group: DescribedConsumerGroup, context: Context, slices: Slices
) -> tuple[Any, ...]:
    members = []
    for each in group.members:
        await slices.count()
        members.append(await _member(each, context, slices))
    return tuple(members)


async def _member(described: DescribedMember, context: Context, slices: Slices) -> Any:
    member = described.member
    extra = {}
    if context.version >= _MEMBER_TYPE:
        extra["member_type"] = _CONSUMER_TYPE if member.classic is None else _CLASSIC_TYPE
    return context.messages.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscribed_topics)),
        subscribed_topic_regex=member.subscribed_regex,
        assignment=await named_assignment(described.owned, context, slices),
        target_assignment=await named_assignment(described.target, context, slices),
        **extra,
    )
