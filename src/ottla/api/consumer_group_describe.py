"""ConsumerGroupDescribe (key 69, KIP-848): state and members of groups of the consumer protocol.

v1: whether a member speaks that protocol or the classic one.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from ottla.api.consumer_group_heartbeat import is_enabled
from ottla.api.context import Context
from ottla.api.described_groups import described_groups
from ottla.api.group_assignments import named_assignment
from ottla.groups.consumer.describe import DescribedMember
from ottla.protocol.access import Access, Operation, Resource
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
    """Each group; see `described_groups`."""
    groups = await described_groups(
        request,
        context,
        context.broker.groups.describe_consumer_group,
        partial(_member, context),
        is_enabled=is_enabled(context),
    )
    return context.messages.ConsumerGroupDescribeResponse(groups=groups)


async def _member(context: Context, described: DescribedMember, slices: Slices) -> Any:
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
