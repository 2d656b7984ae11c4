"""The answer to a Fetch: the data of what was read, and the messages that hold it.

The data is copied out of the files only when the response is written.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ottla.api.context import Context
from ottla.api.current_leader import current_leader, node_endpoints
from ottla.api.fetch_reads import Found, Items, Reads
from ottla.log.file_range import RangeRead
from ottla.log.page_cache import ReadBuffers
from ottla.log.transaction_index import AbortedTransaction
from ottla.protocol.errors import ErrorCode
from ottla.records.header import Buffer
from ottla.replica.disk_reads import DiskReads
from ottla.replica.fetch_session import Fetch, FetchedPartition
from ottla.replica.fetch_wait import Key, TopicKey
from ottla.replica.partition_reader import Read, refused_read
from ottla.replica.read_turns import TURN_BYTES
from ottla.runtime.slices import SLICE, parts

logger = logging.getLogger("ottla.fetch")


class Cold(NamedTuple):
    """A read that waits for the disk."""

    key: Key
    read: RangeRead


def load(
    items: Items,
    found: Found,
    data: dict[Key, memoryview],
    cold: list[Cold],
    buffers: ReadBuffers,
) -> None:
    """Put data from the page cache into `data`, and the reads that wait for the disk into `cold`.
    In `found` an error replaces each partition that cannot be read.
    """
    for key, (each, partition, read, cuts) in items:
        size_bytes = read.range.size_bytes
        if not size_bytes:
            continue
        assert partition is not None
        if partition.log.cuts != cuts:
            found[key] = each, None, _truncated(), cuts
            continue
        partition.counts.bytes_out += size_bytes
        try:
            begun = read.range.begin(buffers)
        except OSError as error:
            found[key] = each, None, _unreadable(each, error), cuts
            continue
        if isinstance(begun, memoryview):
            data[key] = begun
        else:
            cold.append(Cold(key, begun))


async def load_in_turns(
    found: Found, data: dict[Key, memoryview], cold: list[Cold], reads: DiskReads
) -> None:
    """The same for much data or many partitions, or while others read much: see
    `replica.read_turns`.
    """
    some: list[tuple[Key, Any]] = []
    size_bytes = 0
    last = len(found)
    for number, item in enumerate(list(found.items()), 1):
        some.append(item)
        size_bytes += item[1][2].range.size_bytes
        if size_bytes >= TURN_BYTES or len(some) == SLICE or number == last:
            await reads.turns.wait(size_bytes)
            load(some, found, data, cold, reads.buffers)
            some, size_bytes = [], 0


async def load_cold(
    cold: list[Cold], found: Found, data: dict[Key, memoryview], reads: DiskReads
) -> None:
    """The same for the reads that wait for the disk, in a thread."""
    faults = await reads.run(partial(_finish, [each.read for each in cold]))
    for (key, read), fault in zip(cold, faults, strict=True):
        each, partition, _, cuts = found[key]
        assert partition is not None
        if fault is not None:
            found[key] = each, None, _unreadable(each, fault), cuts
        elif partition.log.cuts != cuts:
            found[key] = each, None, _truncated(), cuts
        else:
            data[key] = read.data


def _truncated() -> Read:
    """Other records may be at these offsets, and at this position of the file, by now."""
    return refused_read(ErrorCode.not_leader_or_follower)


def count_throttled(items: Items, context: Context) -> None:
    """Bytes for in-sync replicas count too, so that all replication keeps to the rate."""
    throttle = context.broker.leader_throttle
    for _, (_, partition, read, _) in items:
        if partition is not None:
            throttle.record(partition.topic, partition.index, read.size_bytes)


async def answer_in_slices(reads: Reads, context: Context) -> Any:
    """`_answer` for many partitions."""
    broker, fetch, found = context.broker, reads.fetch, reads.found
    items = list(found.items())
    if reads.conditions.replica is not None:
        for part in parts(items):
            count_throttled(part, context)
            await reads.pause()
    data: dict[Key, memoryview] = {}
    cold: list[Cold] = []
    fetch.pauses()
    await load_in_turns(found, data, cold, broker.disk_reads)
    if cold:
        await load_cold(cold, found, data, broker.disk_reads)
    topics: dict[TopicKey, list[Any]] = {}
    leaders: set[int] = set()
    # Not `items`: an error has replaced what could not be read.
    for part in parts(list(found.items())):
        _add(part, fetch, data, topics, leaders, context)
        await reads.pause()
    responses: list[Any] = []
    for topics_of_part in parts(topics.items()):
        responses += _topics(topics_of_part, fetch, context)
        await reads.pause()
    return _response(responses, leaders, fetch, context)


def _finish(reads: list[RangeRead]) -> list[OSError | None]:
    """Read from the disk, in a worker thread; returns the errors, in the order of the reads."""
    faults: list[OSError | None] = []
    for read in reads:
        try:
            read.finish()
        except OSError as error:
            faults.append(error)
        else:
            faults.append(None)
    return faults


def _unreadable(each: FetchedPartition, error: OSError) -> Read:
    logger.error("cannot read %s-%d: %s", each.topic, each.index, error)
    return refused_read(ErrorCode.kafka_storage_error)


def _add(
    items: Items,
    fetch: Fetch,
    data: dict[Key, memoryview],
    topics: dict[TopicKey, list[Any]],
    leaders: set[int],
    context: Context,
) -> None:
    """Add the answers for these partitions to `topics`, and the leaders they name to `leaders`."""
    topic: TopicKey = None
    answers: list[Any] | None = None
    for key, (each, _, read, _) in items:
        if fetch.has_to_send(each, read):
            records = data.get(key, b"") if read.range.size_bytes else b""
            if answers is None or each.topic is not topic:
                topic = each.topic
                answers = topics.setdefault(topic, [])
            answers.append(_partition_data(each, read, records, context, leaders))


def _topics(
    topics: Iterable[tuple[TopicKey, list[Any]]], fetch: Fetch, context: Context
) -> list[Any]:
    build = context.messages.FetchableTopicResponse
    if fetch.uses_ids:
        return [build(topic_id=topic, partitions=tuple(answers)) for topic, answers in topics]
    return [build(topic=topic, partitions=tuple(answers)) for topic, answers in topics]


def _response(responses: list[Any], leaders: set[int], fetch: Fetch, context: Context) -> Any:
    build = context.messages.FetchResponse
    if leaders and context.version >= 16:
        return build(
            session_id=fetch.session_id,
            responses=tuple(responses),
            node_endpoints=node_endpoints(leaders, context),
        )
    return build(session_id=fetch.session_id, responses=tuple(responses))


def answer(fetch: Fetch, found: Found, data: dict[Key, memoryview], context: Context) -> Any:
    topics: dict[TopicKey, list[Any]] = {}
    leaders: set[int] = set()
    _add(found.items(), fetch, data, topics, leaders, context)
    responses = _topics(topics.items(), fetch, context) if topics else []
    return _response(responses, leaders, fetch, context)


def _aborted(transactions: Sequence[AbortedTransaction], context: Context) -> Any:
    build = context.messages.AbortedTransaction
    return tuple(
        build(producer_id=each.producer_id, first_offset=each.first_offset) for each in transactions
    )


def _partition_data(
    each: FetchedPartition, read: Read, records: Buffer, context: Context, leaders: set[int]
) -> Any:
    build = context.messages
    extra = {}
    code = read.error_code
    if read.diverging_epoch is not None:
        epoch, end_offset = read.diverging_epoch
        extra["diverging_epoch"] = build.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    elif code is ErrorCode.none:
        # By far the most frequent case: each name that is not passed on is time.
        return build.PartitionData(
            partition_index=each.index,
            error_code=code,
            high_watermark=read.high_watermark,
            last_stable_offset=read.last_stable_offset,
            log_start_offset=read.log_start_offset,
            aborted_transactions=None if read.aborted is None else _aborted(read.aborted, context),
            preferred_read_replica=read.preferred_replica,
            records=records,
        )
    if code is not ErrorCode.none and context.version >= 12:
        leader = current_leader(each.topic, each.index, code, context)
        if leader is not None:
            leaders.add(leader.leader_id)
            extra["current_leader"] = leader
    return build.PartitionData(
        partition_index=each.index,
        error_code=code,
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        aborted_transactions=None if read.aborted is None else _aborted(read.aborted, context),
        preferred_read_replica=read.preferred_replica,
        records=records,
        **extra,
    )
