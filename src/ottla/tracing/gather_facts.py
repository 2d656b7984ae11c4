"""Gathers the facts about one offset: looked up on the event loop, read in a thread."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ottla.controller.image import PartitionState
from ottla.journey.facts import Facts, LogLocation, Position
from ottla.journey.key_elsewhere import KeyElsewhere, is_asked
from ottla.journey.offset_history import destinations
from ottla.journey.record_in_batch import RecordInBatch, find_record
from ottla.journey.retention_rules import SegmentFacts
from ottla.journey.shared import SharedFacts
from ottla.log import names
from ottla.log.errors import CorruptIndexError, storage_error
from ottla.log.log import Log
from ottla.log.open_file import OpenFile
from ottla.log.rolling import rolls_ms
from ottla.log.segment import Found, Segment
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.header import NO_TIMESTAMP, BatchHeader, ensure_crc, read_header
from ottla.replica.partition import Partition
from ottla.timelines.delivery_metadata import read_delivery
from ottla.timelines.recorder import TimelineRecorder
from ottla.timelines.step import Kind, Step
from ottla.tracing.group_coordinators import FindGroups, FindSteps
from ottla.tracing.key_search import find_history
from ottla.tracing.near_keys import near_keys
from ottla.tracing.superseding import Superseding, find_superseding
from ottla.tracing.transaction_coordinators import FindTransactions
from ottla.tracing.transaction_search import transaction_facts

FindShared: TypeAlias = Callable[[Sequence[str], int], Awaitable[Sequence[SharedFacts]]]
"""Takes names of share groups, and an offset of the partition."""


class Around(NamedTuple):
    """What the partition itself does not know."""

    broker_id: int
    partition_count: int
    replica_count: int
    timelines: TimelineRecorder
    find_groups: FindGroups
    find_transactions: FindTransactions
    find_steps: FindSteps
    find_elsewhere: Callable[[bytes], Awaitable[KeyElsewhere]]
    """Searches a key in the topic's other partitions."""
    elsewhere: KeyElsewhere | None = None
    """What it found, if it was asked already."""
    find_shared: FindShared | None = None
    """None: there are no share groups."""
    state: PartitionState = PartitionState(-1, -1, (), (), -1)


async def gather(
    partition: Partition, offset: int, around: Around, now_ms: Callable[[], int]
) -> Facts:
    """All facts about `offset`. Raises ApiError if storage or the coordinator fails.

    The clock is read at the end: a step that was recorded meanwhile would look like one from before
    the clock was set back.
    """
    history = await around.timelines.history(partition.timeline, offset)
    groups = await around.find_groups(offset)
    positions = groups.positions
    steps = (*(history.steps if history else ()), *groups.steps)
    log = partition.log
    location = None
    superseding = Superseding(None, 0)
    near: frozenset[bytes] = frozenset()
    transactions = key_history = key_steps = None
    elsewhere = around.elsewhere
    if log.start_offset <= offset < log.end_offset:
        location = await find_location(log, offset)
        header = location.header if location else None
        transactions = await transaction_facts(partition, header, around.find_transactions)
        record = location.record.record if location and location.record else None
        is_compacted = log.config.cleanup_compact and header is not None and not header.is_control
        if is_compacted and record is not None and record.key is not None:
            stable = transactions.last_stable_offset
            superseding = await find_superseding(log, record.key, offset, stable)
        if record is not None and record.key is not None and around.partition_count > 1:
            assert header is not None
            near = await near_keys(log, offset, header.producer_id)
        to = destinations(steps, (position.metadata for position in positions.values()))
        if record is not None and record.key is not None and any(one.by_message_key for one in to):
            key_history = await find_history(log, record.key, offset)
            first = key_history.records[0].offset if key_history.records else offset
            if history and log.segment_number(first) < log.segment_number(offset):
                before = await around.timelines.history(partition.timeline, first)
                earlier = before.steps if before else ()
                told = await around.find_steps(first, _who_recorded(steps, positions))
                key_steps = tuple(dict.fromkeys((*earlier, *told, *steps)))
            if elsewhere is None and around.partition_count > 1 and any(map(is_asked, to)):
                elsewhere = await around.find_elsewhere(record.key)
    shared: Sequence[SharedFacts] = ()
    if around.find_shared is not None:
        shared = await around.find_shared(groups.share_groups, offset)
    return Facts(
        topic=partition.topic,
        partition=partition.index,
        offset=offset,
        now_ms=now_ms(),
        broker_id=around.broker_id,
        partition_count=around.partition_count,
        replica_count=around.replica_count,
        start_offset=log.start_offset,
        end_offset=log.end_offset,
        high_watermark=partition.high_watermark,
        config=log.config,
        segments=segment_facts(log, max(offset, superseding.by or 0)),
        steps=steps if history else None,
        opening=history.opening if history else None,
        positions=positions,
        groups=groups.known,
        location=location,
        superseded_by=superseding.by,
        searched_to=superseding.searched_to,
        undecided=superseding.undecided,
        replicas=around.state.replicas,
        isr=around.state.isr,
        leader=around.state.leader,
        leader_epoch=around.state.leader_epoch,
        partition_epoch=around.state.partition_epoch,
        epoch_starts=[each for each in log.epochs.entries if each.start_offset < log.end_offset],
        fetched=fetched_offsets(partition),
        transactions=transactions,
        near_keys=near,
        key_history=key_history,
        key_steps=key_steps,
        key_elsewhere=elsewhere,
        shared=shared,
    )


def _who_recorded(steps: Iterable[Step], positions: Mapping[str, Position]) -> set[int]:
    """The brokers that may have recorded earlier deliveries of the same pipelines."""
    told = {step.broker for step in steps if step.kind is Kind.DELIVERED}
    told |= {one.coordinator for one in positions.values() if read_delivery(one.metadata)}
    return told - {-1}


def fetched_offsets(partition: Partition) -> dict[int, int]:
    """From where each follower fetched last; empty if this broker does not lead any more."""
    try:
        followers = partition.leader.followers
    except ApiError:
        return {}
    return {each: known.end_offset for each, known in followers.items() if known.end_offset >= 0}


async def find_location(log: Log, offset: int) -> LogLocation | None:
    """Where the offset is stored; None if compaction has removed the whole batch around it.

    Records that cannot be read are reported as damage. Raises ApiError KAFKA_STORAGE_ERROR if even
    the batch cannot be read.
    """
    number = log.segment_number(offset)
    segment = log.segments[number]
    try:
        found = log.find(segment, offset)
        entry, entry_position = segment.offset_index.lookup(offset)
        file = segment.file()
        facts = one_segment(log, number)  # before the wait, in which segments may change
    except CorruptIndexError as error:
        raise ApiError(ErrorCode.kafka_storage_error, str(error)) from None
    if found is None:
        return None
    batch = await asyncio.to_thread(read_batch, file, found)
    header = read_header(batch)
    if header.base_offset > offset:
        return None
    record, damage = None, None
    try:
        record = await asyncio.to_thread(find_sound_record, header, batch, offset)
    except ApiError as error:
        damage = str(error)
    return LogLocation(
        segment=facts,
        folder=os.path.basename(log.folder),
        log_file=names.file_name(segment.base_offset, names.LOG),
        index_file=names.file_name(segment.base_offset, names.INDEX),
        # The first batch needs no entry.
        index_entry=(entry, entry_position) if entry_position else None,
        batch_position=found.position,
        header=header,
        record=record,
        damage=damage,
    )


def read_batch(file: OpenFile, found: Found) -> bytes:
    """The batch's bytes. Raises ApiError KAFKA_STORAGE_ERROR."""
    try:
        return os.pread(file.fd, found.size_bytes, found.position)
    except OSError as error:
        raise storage_error("cannot read a batch", error) from None


def find_sound_record(header: BatchHeader, batch: bytes, offset: int) -> RecordInBatch | None:
    """The record, from a batch with a valid checksum. Raises CorruptBatchError if it is not
    valid.
    """
    ensure_crc(header, batch)
    return find_record(header, batch, offset)


def segment_facts(log: Log, offset: int) -> list[SegmentFacts]:
    """The segments, oldest first; largest timestamps only up to the offset's own segment."""
    last = log.segment_number(offset)
    return [one_segment(log, number, timed=number <= last) for number in range(len(log.segments))]


def one_segment(log: Log, number: int, *, timed: bool = True) -> SegmentFacts:
    segment = log.segments[number]
    is_active = number + 1 == len(log.segments)
    next_offset = log.end_offset if is_active else log.segments[number + 1].base_offset
    closes_ms = rolls_ms(segment, log.config) if is_active and segment.size_bytes else None
    largest_ms = largest_timestamp(segment) if timed else NO_TIMESTAMP
    return SegmentFacts(
        segment.base_offset, next_offset, segment.size_bytes, largest_ms, is_active, closes_ms
    )


def largest_timestamp(segment: Segment) -> int:
    """The timestamp that retention by time uses. Raises ApiError KAFKA_STORAGE_ERROR."""
    try:
        return segment.largest_timestamp()
    except OSError as error:
        raise storage_error(f"cannot read the time of {segment.path}", error) from None
    except CorruptIndexError as error:
        raise ApiError(ErrorCode.kafka_storage_error, str(error)) from None
