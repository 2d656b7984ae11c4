"""DescribeShareGroupOffsets (key 90, KIP-932): where share groups stand in their partitions.

Without topics: all of the group that have state. A partition without state, or one that does not
exist, has the start offset -1, and so has one of a topic that does not exist: groups are not looked
up for that, as in Apache Kafka. Where a share coordinator does not answer Kafka says -1 too; here
the partition has the error. v1 (KIP-1226): the lag, which is -1 where it is not known. Each group
is answered once: a short request that repeats a large one would get gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from ottla.api.context import Context
from ottla.api.share_group_heartbeat import DISABLED, is_enabled
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices
from ottla.share.shard import Summary
from ottla.share.stored import NO_COUNT, NO_OFFSET

KEY: Final = 90
ACCESS: Final = (
    Access(Operation.DESCRIBE, Resource.GROUP),
    Access(Operation.DESCRIBE, Resource.TOPIC),
)

UNKNOWN_LAG: Final = -1
_LAG: Final = 1
"""The first version that has it."""
_NO_STATE: Final = Summary()


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    groups, slices = [], Slices()
    seen: set[str] = set()
    for group in request.groups:
        await slices.count()
        try:
            if group.group_id in seen:
                raise ApiError(ErrorCode.invalid_request, "The request names the group twice.")
            seen.add(group.group_id)
            if not is_enabled(context):
                raise ApiError(ErrorCode.unsupported_version, DISABLED)
            topics = await _topics(group, context, slices)
        except ApiError as error:
            groups.append(
                build.DescribeShareGroupOffsetsResponseGroup(
                    group_id=group.group_id,
                    topics=(),
                    error_code=error.code,
                    error_message=error.message or None,
                )
            )
        else:
            groups.append(
                build.DescribeShareGroupOffsetsResponseGroup(
                    group_id=group.group_id, topics=tuple(topics)
                )
            )
    return build.DescribeShareGroupOffsetsResponse(groups=tuple(groups))


async def _topics(group: Any, context: Context, slices: Slices) -> list[Any]:
    image, shares = context.broker.image, context.broker.groups.share
    names: dict[UUID, str] = {}
    wanted: dict[UUID, dict[int, None]] = {}
    existing: dict[UUID, list[int]] = {}
    """The share coordinators are asked about no others."""
    unknown: list[tuple[str, Iterable[int]]] = []
    if group.topics is None:
        for topic_id, numbers in (await shares.initialized(group.group_id)).items():
            topic = image.topic_by_id(topic_id)
            if topic is not None:
                names[topic_id], existing[topic_id] = topic.name, sorted(numbers)
                wanted[topic_id] = dict.fromkeys(existing[topic_id])
    else:
        for asked in group.topics:
            await slices.count()
            topic = image.topic(asked.topic_name)
            if topic is None:
                unknown.append((asked.topic_name, asked.partitions))
            else:
                names[topic.topic_id] = topic.name
                its = wanted.setdefault(topic.topic_id, {})
                there = existing.setdefault(topic.topic_id, [])
                for partition in asked.partitions:
                    await slices.count()
                    if partition not in its and 0 <= partition < len(topic.partitions):
                        there.append(partition)
                    its[partition] = None
    found = await shares.summaries(group.group_id, existing)
    ends = await _ends(found, names, context)
    build = context.messages
    topics = []
    for topic_id, partitions in wanted.items():
        answers = []
        for partition in partitions:
            await slices.count()
            end = ends.get((names[topic_id], partition), NO_OFFSET)
            summary = found.get((topic_id, partition), _NO_STATE)
            answers.append(_answer(partition, summary, end, context))
        topics.append(
            build.DescribeShareGroupOffsetsResponseTopic(
                topic_name=names[topic_id], topic_id=topic_id, partitions=tuple(answers)
            )
        )
    for name, unknown_numbers in unknown:
        answers = []
        for partition in unknown_numbers:
            await slices.count()
            answers.append(_answer(partition, _NO_STATE, NO_OFFSET, context))
        topics.append(
            build.DescribeShareGroupOffsetsResponseTopic(
                topic_name=name,
                topic_id=None,
                partitions=tuple(answers),
            )
        )
    return topics


async def _ends(
    found: dict[tuple[UUID, int], Summary | ApiError], names: dict[UUID, str], context: Context
) -> dict[tuple[str, int], int | ApiError]:
    """Of the partitions whose lag can be told."""
    if context.version < _LAG:
        return {}
    return await context.broker.groups.share.ends.of(
        (names[topic_id], partition)
        for (topic_id, partition), summary in found.items()
        if isinstance(summary, Summary) and _has_lag(summary)
    )


def _has_lag(summary: Summary) -> bool:
    return summary.start_offset != NO_OFFSET and summary.delivery_complete_count != NO_COUNT


def _answer(
    partition: int, summary: Summary | ApiError, end: int | ApiError, context: Context
) -> Any:
    build = context.messages.DescribeShareGroupOffsetsResponsePartition
    error = end if isinstance(end, ApiError) else None
    if isinstance(summary, ApiError):
        if summary.code is ErrorCode.unknown_topic_or_partition:
            summary = _NO_STATE
        else:
            error, summary = summary, _NO_STATE
    if error is not None:
        return build(
            partition_index=partition,
            start_offset=NO_OFFSET,
            leader_epoch=0,
            lag=UNKNOWN_LAG,
            error_code=error.code,
            error_message=error.message or None,
        )
    assert isinstance(end, int)
    lag = UNKNOWN_LAG
    if _has_lag(summary) and end != NO_OFFSET:
        lag = max(end - summary.start_offset - summary.delivery_complete_count, 0)
    return build(
        partition_index=partition,
        start_offset=summary.start_offset,
        leader_epoch=max(summary.leader_epoch, 0),
        lag=lag,
    )
