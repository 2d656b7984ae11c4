"""DeleteShareGroupOffsets (key 92, KIP-932): a share group without members forgets topics."""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.api.share_group_heartbeat import DISABLED, is_enabled
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices

KEY: Final = 92
ACCESS: Final = (
    Access(Operation.DELETE, Resource.GROUP),
    Access(Operation.READ, Resource.TOPIC),
)

_NOTHING: Final = "There is no offset information to delete."


async def handle(request: Any, context: Context) -> Any:
    build, slices = context.messages, Slices()
    names = list(dict.fromkeys(topic.topic_name for topic in request.topics))
    try:
        if not is_enabled(context):
            raise ApiError(ErrorCode.unsupported_version, DISABLED)
        deleted = await context.broker.groups.share.delete_offsets(request.group_id, names)
    except ApiError as error:
        return build.DeleteShareGroupOffsetsResponse(
            error_code=error.code, error_message=error.message or None, responses=()
        )
    topics = []
    for name in names:
        await slices.count()
        topic = context.broker.image.topic(name)
        topic_id = None if topic is None else topic.topic_id
        if topic_id is None:
            refused: ApiError | None = ApiError(ErrorCode.unknown_topic_or_partition)
        elif topic_id not in deleted:
            topic_id = None
            refused = ApiError(ErrorCode.unknown_topic_or_partition, _NOTHING)
        else:
            refused = deleted[topic_id]
        topics.append(
            build.DeleteShareGroupOffsetsResponseTopic(
                topic_name=name,
                topic_id=topic_id,
                error_code=ErrorCode.none if refused is None else refused.code,
                error_message=None if refused is None else refused.message or None,
            )
        )
    return build.DeleteShareGroupOffsetsResponse(responses=tuple(topics))
