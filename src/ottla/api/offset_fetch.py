"""OffsetFetch (key 9): a group's committed offsets. An unknown group is not an error: offset -1.

v2 (KIP-88): all topics (null), and an error for the whole response. v5 (KIP-320): leader epochs.
v6: flexible. v7 (KIP-447): require_stable, and UNSTABLE_OFFSET_COMMIT for an offset that an open
transaction may change; the response always waits for offsets that are not committed yet. v8
(KIP-709): many groups. v9 (KIP-848): member id and epoch, which must be those of a member of a
consumer group; classic groups ignore them. v10: topic ids.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from uuid import UUID

from ottla.api.context import Context
from ottla.groups.offsets.fetch import NO_MEMBER, FetchedOffset, FetchingMember
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.runtime.slices import Slices, parts

KEY: Final = 9
ACCESS: Final = (
    Access(Operation.DESCRIBE, Resource.GROUP),
    Access(Operation.DESCRIBE, Resource.TOPIC),
)

_ERROR_FOR_ALL: Final = 2
_MANY_GROUPS: Final = 8
_MEMBERS: Final = 9
_TOPIC_IDS: Final = 10

_REQUIRE_STABLE: Final = VersionedField(KEY, "OffsetFetchRequest", "require_stable", False)


class _Topic(NamedTuple):
    name: str
    topic_id: UUID | None
    offsets: tuple[FetchedOffset, ...]
    error: ErrorCode = ErrorCode.none


class _Reader(NamedTuple):
    """Who asks, and how."""

    group: str
    require_stable: bool
    member: FetchingMember


class _Group(NamedTuple):
    topics: list[_Topic]
    error: ErrorCode = ErrorCode.none


async def handle(request: Any, context: Context) -> Any:
    build, slices = context.messages, Slices()
    if context.version < _MANY_GROUPS:
        found = await _fetch(request, request, context, slices)
        topics = await _topics(found, context, slices)
        return build.OffsetFetchResponse(topics=topics, error_code=found.error)
    groups: list[Any] = []
    seen: set[str] = set()
    for group in request.groups:
        if not slices.has_room(1):
            await slices.count()
        if group.group_id in seen:
            # No client repeats a group. A short request that does would get gigabytes.
            found = _Group([], ErrorCode.invalid_request)
        else:
            seen.add(group.group_id)
            found = await _fetch(request, group, context, slices)
        groups.append(
            build.OffsetFetchResponseGroup(
                group_id=group.group_id,
                topics=await _topics(found, context, slices),
                error_code=found.error,
            )
        )
    return build.OffsetFetchResponse(groups=tuple(groups))


async def _fetch(request: Any, group: Any, context: Context, slices: Slices) -> _Group:
    """One group of the request; before version 8 the request itself is that group."""
    topics = group.topics
    reader = _Reader(group.group_id, _REQUIRE_STABLE(request), NO_MEMBER)
    if context.version >= _MEMBERS:
        reader = reader._replace(member=FetchingMember(group.member_id, group.member_epoch))
    try:
        if topics is None:
            found = await _fetch_all(reader, context, slices)
        else:
            found = await _fetch_some(reader, topics, context, slices)
        return _Group(found)
    except ApiError as error:
        code = error.code
    if code is ErrorCode.coordinator_not_available:
        # Consumers before 3.9 do not expect that error here; with this one they retry.
        code = ErrorCode.not_coordinator
    if context.version >= _ERROR_FOR_ALL:
        return _Group([], code)
    return _Group(
        [
            _Topic(topic.name, None, await _none(topic.partition_indexes, slices), code)
            for topic in topics
        ],
        code,
    )


async def _none(partitions: Any, slices: Slices) -> tuple[FetchedOffset, ...]:
    """Partitions without an offset."""
    offsets: list[FetchedOffset] = []
    for some in parts(partitions):
        if not slices.has_room(len(some)):
            await slices.count(len(some))
        offsets += map(FetchedOffset, some)
    return tuple(offsets)


async def _fetch_all(reader: _Reader, context: Context, slices: Slices) -> list[_Topic]:
    topics = []
    found = await context.broker.groups.fetch_all(
        reader.group, require_stable=reader.require_stable, member=reader.member
    )
    for name, offsets in found.items():
        if not slices.has_room(1):
            await slices.count()
        known = context.broker.image.topic(name)
        if known is not None or context.version < _TOPIC_IDS:
            topics.append(_Topic(name, None if known is None else known.topic_id, offsets))
    return topics


async def _fetch_some(
    reader: _Reader, topics: Any, context: Context, slices: Slices
) -> list[_Topic]:
    requested: list[tuple[str, UUID | None, tuple[int, ...]]] = []
    unknown = []
    for topic in topics:
        if not slices.has_room(1):
            await slices.count()
        partitions = tuple(topic.partition_indexes)
        if context.version < _TOPIC_IDS:
            requested.append((topic.name, None, partitions))
            continue
        known = None if topic.topic_id is None else context.broker.image.topic_by_id(topic.topic_id)
        if known is None:
            offsets = await _none(partitions, slices)
            unknown.append(_Topic("", topic.topic_id, offsets, ErrorCode.unknown_topic_id))
        else:
            requested.append((known.name, known.topic_id, partitions))
    fetched = await context.broker.groups.fetch(
        reader.group, requested, require_stable=reader.require_stable, member=reader.member
    )
    found = []
    for (name, topic_id, _), offsets in zip(requested, fetched, strict=True):
        if not slices.has_room(1):
            await slices.count()
        found.append(_Topic(name, topic_id, offsets))
    return found + unknown if unknown else found


async def _topics(group: _Group, context: Context, slices: Slices) -> tuple[Any, ...]:
    topics = []
    # Before version 8 the structs had other names.
    is_old = context.version < _MANY_GROUPS
    messages = context.messages
    build = (
        messages.OffsetFetchResponsePartition if is_old else messages.OffsetFetchResponsePartitions
    )
    for topic in group.topics:
        partitions: list[Any] = []
        if slices.has_room(1 + len(topic.offsets)):
            partitions = [build(**_fields(offset, topic.error)) for offset in topic.offsets]
        else:
            await slices.count()
            for some in parts(topic.offsets):
                await slices.count(len(some))
                partitions += [build(**_fields(offset, topic.error)) for offset in some]
        if is_old:
            topics.append(
                messages.OffsetFetchResponseTopic(name=topic.name, partitions=tuple(partitions))
            )
        else:
            topics.append(
                messages.OffsetFetchResponseTopics(
                    name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions)
                )
            )
    return tuple(topics)


def _fields(offset: FetchedOffset, error: ErrorCode) -> dict[str, Any]:
    return {
        "partition_index": offset.partition,
        "committed_offset": offset.offset,
        "committed_leader_epoch": offset.leader_epoch,
        "metadata": offset.metadata,
        "error_code": offset.error if error is ErrorCode.none else error,
    }
