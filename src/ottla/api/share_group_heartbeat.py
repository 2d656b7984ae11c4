"""ShareGroupHeartbeat (key 76, KIP-932): a member joins a share group, is alive, leaves.

It says what it subscribes to, and gets to know which partitions it reads. At level 0 of
`share.version` the response is UNSUPPORTED_VERSION, as Apache Kafka's
(KafkaApis.isShareGroupProtocolEnabled). v1 is the first version.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.api.group_assignments import assignment, subscribed_topics
from ottla.controller.features import SHARE_VERSION
from ottla.groups.share.requests import HeartbeatRequest
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices

KEY: Final = 76
ACCESS: Final = (
    Access(Operation.READ, Resource.GROUP),
    Access(Operation.DESCRIBE, Resource.TOPIC),
)

TAKES_TURNS: Final = True
"""All members of a group may send it at the same time."""

DISABLED: Final = (
    "This cluster does not use share groups (KIP-932): its feature share.version is at level 0."
    " Raise it (kafka-features.sh upgrade --feature share.version=1)."
)


def is_enabled(context: Context) -> bool:
    """Whether the cluster has share groups."""
    return context.broker.image.features.get(SHARE_VERSION, 0) >= 1


async def handle(request: Any, context: Context) -> Any:
    build, slices = context.messages, Slices()
    if not is_enabled(context):
        return build.ShareGroupHeartbeatResponse(
            error_code=ErrorCode.unsupported_version, error_message=DISABLED
        )
    try:
        result = await context.broker.groups.share.heartbeat(_request(request, context))
    except ApiError as error:
        return build.ShareGroupHeartbeatResponse(
            error_code=error.code, error_message=error.message or None
        )
    return build.ShareGroupHeartbeatResponse(
        member_id=result.member_id,
        member_epoch=result.epoch,
        heartbeat_interval=result.heartbeat_interval_ms,
        assignment=await assignment(result.assignment, build, slices),
    )


def _request(request: Any, context: Context) -> HeartbeatRequest:
    return HeartbeatRequest(
        group=request.group_id,
        member_id=request.member_id,
        epoch=request.member_epoch,
        client_id=context.client_id,
        client_host=context.session.address,
        rack_id=request.rack_id,
        subscribed_topics=subscribed_topics(request),
    )
