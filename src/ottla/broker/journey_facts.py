"""Gathers what is to be known about one offset: looked up on the loop, read in a thread."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.journey import Journey
from ottla.broker.journey_search import find_later
from ottla.broker.partition import Partition
from ottla.controller.image import PartitionState
from ottla.journey.facts import Facts, Place, Position
from ottla.journey.place import PlacedRecord, find_record
from ottla.journey.retention import SegmentFacts
from ottla.log import names
from ottla.log.errors import InsaneIndexError, storage_error
from ottla.log.log import Log
from ottla.log.open_file import OpenFile
from ottla.log.rolling import rolls_ms
from ottla.log.segment import Found, Segment
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.header import NO_TIMESTAMP, BatchHeader, ensure_crc, read_header

if TYPE_CHECKING:
    from ottla.broker.coordinator import GroupCoordinators

MAX_GROUPS: Final = 500
"""Groups that are asked for their position in the partition."""


class Around(NamedTuple):
    """What the partition itself does not know."""

    broker_id: int
    partition_count: int
    replica_count: int
    journey: Journey
    groups: GroupCoordinators
    state: PartitionState = PartitionState(-1, -1, (), (), -1)


async def gather(partition: Partition, offset: int, around: Around, now_ms: int) -> Facts:
    """All facts about `offset`. Raises ApiError where storage or the coordinator refuses."""
    told = await around.journey.told(partition.timeline, offset)
    positions = await positions_of(around.groups, partition.topic, partition.index)
    log = partition.log
    place = None
    superseded_by, searched_to = None, 0
    if log.start_offset <= offset < log.end_offset:
        place = await find_place(log, offset)
        record = place.record.record if place and place.record else None
        if log.config.cleanup_compact and record is not None and record.key is not None:
            superseded_by, searched_to = await find_later(log, record.key, offset)
    return Facts(
        topic=partition.topic,
        partition=partition.index,
        offset=offset,
        now_ms=now_ms,
        broker_id=around.broker_id,
        partition_count=around.partition_count,
        replica_count=around.replica_count,
        start_offset=log.start_offset,
        end_offset=log.end_offset,
        high_watermark=partition.high_watermark,
        config=log.config,
        segments=segment_facts(log, offset),
        steps=told.steps if told else None,
        opening=told.opening if told else None,
        positions=positions,
        place=place,
        superseded_by=superseded_by,
        searched_to=searched_to,
        replicas=around.state.replicas,
        isr=around.state.isr,
        leader=around.state.leader,
        leader_epoch=around.state.leader_epoch,
    )


async def positions_of(
    groups: GroupCoordinators, topic: str, partition: int
) -> dict[str, Position]:
    """Where each group (of at most `MAX_GROUPS`) stands in the partition."""
    found: dict[str, Position] = {}
    for group in (await groups.list_groups(frozenset(), frozenset()))[:MAX_GROUPS]:
        ((fetched,),) = await groups.fetch(group.group, ((topic, None, (partition,)),))
        if fetched.offset >= 0:
            found[group.group] = Position(fetched.offset, fetched.metadata)
    return found


async def find_place(log: Log, offset: int) -> Place | None:
    """Where the offset lies; None where compaction has removed the whole batch around it.

    A batch whose records cannot be read is told as damage. Raises ApiError KAFKA_STORAGE_ERROR
    where not even the batch can be.
    """
    number = log.segment_number(offset)
    segment = log.segments[number]
    try:
        found = log.find(segment, offset)
        entry, entry_position = segment.offset_index.lookup(offset)
        file = segment.file()
        facts = one_segment(log, number)  # before the wait, in which segments come and go
    except InsaneIndexError as error:
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
    return Place(
        segment=facts,
        folder=os.path.basename(log.folder),
        log_file=names.file_name(segment.base_offset, names.LOG),
        index_file=names.file_name(segment.base_offset, names.INDEX),
        # The first batch has no entry: it needs none.
        index_entry=(entry, entry_position) if entry_position else None,
        batch_position=found.position,
        header=header,
        record=record,
        damage=damage,
    )


def read_batch(file: OpenFile, found: Found) -> bytes:
    """The batch's bytes; raises ApiError KAFKA_STORAGE_ERROR."""
    try:
        return os.pread(file.fd, found.size_bytes, found.position)
    except OSError as error:
        raise storage_error("cannot read a batch", error) from None


def find_sound_record(header: BatchHeader, batch: bytes, offset: int) -> PlacedRecord | None:
    """The record, from a batch whose checksum holds; raises CorruptBatchError where it does not."""
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
    """What retention by time goes by; raises ApiError KAFKA_STORAGE_ERROR."""
    try:
        return segment.largest_timestamp()
    except OSError as error:
        raise storage_error(f"cannot look at {segment.path}", error) from None
    except InsaneIndexError as error:
        raise ApiError(ErrorCode.kafka_storage_error, str(error)) from None
