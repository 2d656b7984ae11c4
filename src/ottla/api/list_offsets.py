"""ListOffsets (key 2): offsets by timestamp, and the start and end of partitions.

v2 (KIP-98): isolation level. v4 (KIP-207, KIP-320): leader epochs. v7 (KIP-734): timestamp -3, the
record with the largest timestamp. v8 (KIP-405): -4, the earliest local offset. v9 (KIP-1005): -5,
the latest tiered offset. v10 (KIP-1075): a timeout for remote storage. v11 (KIP-1023): -6, the
earliest offset that is not uploaded yet.
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from functools import partial
from typing import Any, Final, NamedTuple

from ottla.api.broker_requests import is_from_broker, refused
from ottla.api.context import Context
from ottla.log.lookup import FoundTimestamp
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.replica.partition import Partition
from ottla.runtime.slices import Slices
from ottla.storage.after_rebuild import after_rebuild

KEY: Final = 2
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.TOPIC),)

_CURRENT_LEADER_EPOCH: Final = VersionedField(
    KEY, "ListOffsetsPartition", "current_leader_epoch", -1
)
_ISOLATION_LEVEL: Final = VersionedField(KEY, "ListOffsetsRequest", "isolation_level", 0)


class SpecialTimestamp(IntEnum):
    """The meaning of a timestamp below 0."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


_SINCE_VERSION: Final = {
    SpecialTimestamp.LATEST: 1,
    SpecialTimestamp.EARLIEST: 1,
    SpecialTimestamp.MAX_TIMESTAMP: 7,
    SpecialTimestamp.EARLIEST_LOCAL: 8,
    SpecialTimestamp.LATEST_TIERED: 9,
    SpecialTimestamp.EARLIEST_PENDING_UPLOAD: 11,
}
_NEVER: Final = 2**15
_READ_COMMITTED: Final = 1
_CONSUMER: Final = -1
_DEBUGGING: Final = -2
_OFFSET_NOT_AVAILABLE_SINCE: Final = 5


class Answer(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


async def handle(request: Any, context: Context) -> Any:
    if is_between_brokers(request) and not is_from_broker(context, request.replica_id):
        return await refused(request, context)
    build = context.messages
    slices = Slices()
    requested: Counter[tuple[str, int]] = Counter()
    for topic in request.topics:
        for each in topic.partitions:
            await slices.count()
            requested[topic.name, each.partition_index] += 1
    topics = []
    for topic in request.topics:
        answers = []
        for each in topic.partitions:
            await slices.count()
            try:
                if requested[topic.name, each.partition_index] > 1:
                    raise ApiError(ErrorCode.invalid_request)
                found = await _find(request, topic.name, each, context)
            except ApiError as error:
                context.broker.storage_failure.read_failed(topic.name, each.partition_index, error)
                answers.append(
                    build.ListOffsetsPartitionResponse(
                        partition_index=each.partition_index,
                        error_code=error.code,
                        timestamp=-1,
                        offset=-1,
                        leader_epoch=-1,
                    )
                )
            else:
                answers.append(
                    build.ListOffsetsPartitionResponse(
                        partition_index=each.partition_index, **found._asdict()
                    )
                )
        topics.append(build.ListOffsetsTopicResponse(name=topic.name, partitions=tuple(answers)))
    return build.ListOffsetsResponse(topics=tuple(topics))


async def _find(request: Any, topic: str, each: Any, context: Context) -> Answer:
    if each.timestamp < 0 and context.version < _SINCE_VERSION.get(each.timestamp, _NEVER):
        raise ApiError(ErrorCode.unsupported_version)
    partition: Partition = context.broker.partitions.find(topic, each.partition_index)
    if request.replica_id != _DEBUGGING:
        partition.check_leads()
    partition.check_leader_epoch(_CURRENT_LEADER_EPOCH(each))
    committed_only = _ISOLATION_LEVEL(request) == _READ_COMMITTED
    # A consumer sees committed records; a debugging client with another replica id sees all.
    end = partition.reader.end_for(committed_only) if request.replica_id == _CONSUMER else None
    epoch = partition.leader_epoch
    match each.timestamp:
        case SpecialTimestamp.LATEST:
            if end is not None:
                _check_known(partition, context)
            return Answer(-1, partition.log.end_offset if end is None else end, epoch)
        case SpecialTimestamp.EARLIEST | SpecialTimestamp.EARLIEST_LOCAL:
            start = partition.log.start_offset
            # An empty log starts with the next record, which this leader writes.
            empty = start == partition.log.end_offset
            return Answer(-1, start, epoch if empty else partition.reader.epoch_of(start))
        case SpecialTimestamp.LATEST_TIERED | SpecialTimestamp.EARLIEST_PENDING_UPLOAD:
            return Answer(-1, -1, -1)  # there is no remote storage
        case SpecialTimestamp.MAX_TIMESTAMP:
            found = await after_rebuild(partial(_search, partition, None, context))
        case time_ms:
            found = await after_rebuild(partial(_search, partition, time_ms, context))
    if found is not None and end is not None and found.offset >= end:
        _check_known(partition, context)
    if found is None or (end is not None and found.offset >= end):
        return Answer(-1, -1, -1)
    return Answer(found.timestamp_ms, found.offset, found.leader_epoch)


async def _search(
    partition: Partition, timestamp_ms: int | None, context: Context
) -> FoundTimestamp | None:
    """Search the batches in a thread. Raises ApiError: KAFKA_STORAGE_ERROR, and
    NOT_LEADER_OR_FOLLOWER if another broker led, or the log was truncated, in the meantime.
    """
    before = partition.leadership, partition.log.cuts
    for search in partition.reader.searches(timestamp_ms):
        found = await context.broker.disk_reads.run(search.run)
        if (partition.leadership, partition.log.cuts) != before:
            raise ApiError(ErrorCode.not_leader_or_follower)
        if found is not None:
            return found
    return None


def _check_known(partition: Partition, context: Context) -> None:
    """Raise ApiError while a new leader does not know what is committed (KIP-207)."""
    try:
        partition.reader.check_latest_known()
    except ApiError:
        if context.version >= _OFFSET_NOT_AVAILABLE_SINCE:
            raise
        raise ApiError(ErrorCode.leader_not_available) from None


def is_between_brokers(request: Any) -> bool:
    """Whether a replica asks its leader."""
    replica_id: int = request.replica_id
    return replica_id >= 0
