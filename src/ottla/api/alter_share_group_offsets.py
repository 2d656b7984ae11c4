"""AlterShareGroupOffsets (key 91, KIP-932): where a share group without members begins to read.

The group is made if it does not exist. Its state in these partitions begins again, from the start.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.api.share_group_heartbeat import DISABLED, is_enabled
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices
from ottla.share.stored import NO_OFFSET

KEY: Final = 91
ACCESS: Final = (
    Access(Operation.READ, Resource.GROUP),
    Access(Operation.READ, Resource.TOPIC),
)

_NEGATIVE: Final = "A start offset is at least 0; with -1 the group begins where its settings say."


async def handle(request: Any, context: Context) -> Any:
    build, slices = context.messages, Slices()
    offsets: dict[str, dict[int, int]] = {}
    valid: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        its = offsets.setdefault(topic.topic_name, {})
        for each in topic.partitions:
            await slices.count()
            its[each.partition_index] = each.start_offset
    for name, its in offsets.items():
        its_valid = valid.setdefault(name, {})
        for number, offset in its.items():
            await slices.count()
            if offset >= NO_OFFSET:
                its_valid[number] = offset
    try:
        if not is_enabled(context):
            raise ApiError(ErrorCode.unsupported_version, DISABLED)
        altered = await context.broker.groups.share.alter_offsets(request.group_id, valid)
    except ApiError as error:
        return build.AlterShareGroupOffsetsResponse(
            error_code=error.code, error_message=error.message or None, responses=()
        )
    topics = []
    for name, its in offsets.items():
        image = context.broker.image.topic(name)
        topic_id = None if image is None else image.topic_id
        answers = []
        for number in its:
            await slices.count()
            refused: ApiError | None = None
            if number not in valid[name]:
                refused = ApiError(ErrorCode.invalid_request, _NEGATIVE)
            elif topic_id is None or (name, number) in altered.unknown:
                refused = ApiError(ErrorCode.unknown_topic_or_partition)
            else:
                refused = altered.errors.get((topic_id, number))
            answers.append(
                build.AlterShareGroupOffsetsResponsePartition(
                    partition_index=number,
                    error_code=ErrorCode.none if refused is None else refused.code,
                    error_message=None if refused is None else refused.message or None,
                )
            )
        topics.append(
            build.AlterShareGroupOffsetsResponseTopic(
                topic_name=name, topic_id=topic_id, partitions=tuple(answers)
            )
        )
    return build.AlterShareGroupOffsetsResponse(responses=tuple(topics))
