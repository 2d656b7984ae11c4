"""ShareGroupDescribe (key 77, KIP-932): state and members of share groups. v1 is the first."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from ottla.api.context import Context
from ottla.api.described_groups import described_groups
from ottla.api.group_assignments import named_assignment
from ottla.api.share_group_heartbeat import is_enabled
from ottla.groups.share.member import Member
from ottla.protocol.access import Access, Operation, Resource
from ottla.runtime.slices import Slices

KEY: Final = 77
ACCESS: Final = (
    Access(Operation.DESCRIBE, Resource.GROUP),
    Access(Operation.DESCRIBE, Resource.TOPIC),
)


async def handle(request: Any, context: Context) -> Any:
    """Each group; see `described_groups`."""
    groups = await described_groups(
        request,
        context,
        context.broker.groups.share.describe,
        partial(_member, context),
        is_enabled=is_enabled(context),
    )
    return context.messages.ShareGroupDescribeResponse(groups=groups)


async def _member(context: Context, member: Member, slices: Slices) -> Any:
    return context.messages.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscribed_topics)),
        assignment=await named_assignment(member.assigned, context, slices),
    )
