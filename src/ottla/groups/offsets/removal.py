"""Removing offsets: a client deletes them, their group or topic is deleted, or they expire.

A group may have an offset in each of 100,000 partitions. A step removes at most MAX_REMOVED, and
says whether more are left for the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Final
from uuid import UUID

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.state import DEAD, EMPTY, STABLE
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.offsets.pending import PendingOffsets
from ottla.groups.offsets.store import OffsetStore
from ottla.groups.step import Step
from ottla.groups.stored import (
    NO_TIMESTAMP,
    CoordinatorRecord,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ottla.groups.streams.group import StreamsGroup
from ottla.protocol.errors import ApiError, ErrorCode

MAX_REMOVED: Final = 2_000
"""Of one step, in about 10 ms."""


def delete_offsets(
    group: ClassicGroup | ConsumerGroup | StreamsGroup | None,
    topics: tuple[tuple[str, tuple[int, ...]], ...],
    offsets: OffsetStore,
    pending: PendingOffsets,
    step: Step,
) -> list[list[ErrorCode]]:
    """OffsetDelete (KIP-496): each partition's error, by topic.

    Raises ApiError: GROUP_ID_NOT_FOUND, or NON_EMPTY_GROUP where the members are no consumers, so
    that it is unknown what they read.
    """
    if group is None:
        raise ApiError(ErrorCode.group_id_not_found)
    if isinstance(group, ClassicGroup):
        _check_deletable(group)
    errors = []
    for topic, partitions in topics:
        subscribed = group.is_subscribed(topic)
        error = ErrorCode.group_subscribed_to_topic if subscribed else ErrorCode.none
        errors.append([error] * len(partitions))
        for partition in () if subscribed else partitions:
            key = OffsetCommitKey(group.group_id, topic, partition)
            if offsets.get(*key) is not None or pending.has(*key):
                _tombstone(key, step)
    return errors


def _check_deletable(group: ClassicGroup) -> None:
    if group.state is DEAD:
        raise ApiError(ErrorCode.group_id_not_found)
    if group.state is not EMPTY and not group.uses_consumer_protocol:
        raise ApiError(ErrorCode.non_empty_group)


def delete_all_offsets(
    group_id: str, offsets: OffsetStore, pending: PendingOffsets, step: Step
) -> bool:
    """Everything that a group has committed, in open transactions too. False: more are left."""
    return _remove(_keys_of(group_id, offsets, pending), step)


def _keys_of(
    group_id: str, offsets: OffsetStore, pending: PendingOffsets
) -> Iterator[OffsetCommitKey]:
    for topic, partitions in offsets.of_group(group_id).items():
        for partition in partitions:
            yield OffsetCommitKey(group_id, topic, partition)
    for key in pending.of_group(group_id):
        if offsets.get(*key) is None:
            yield key


def _remove(keys: Iterator[OffsetCommitKey], step: Step) -> bool:
    """False: more are left."""
    for key in islice(keys, MAX_REMOVED):
        _tombstone(key, step)
    return next(keys, None) is None


def topic_deleted(
    topic: str,
    topic_id: UUID | None,
    offsets: OffsetStore,
    pending: PendingOffsets,
    step: Step,
) -> bool:
    """The offsets of all groups in a deleted topic, but not those in a topic recreated since.

    False: more are left.
    """
    found = chain(offsets.of_topic(topic), pending.of_topic(topic))
    gone = (key for key, value in found if topic_id is None or value.topic_id in (None, topic_id))
    first = dict.fromkeys(islice(gone, MAX_REMOVED))
    for key in first:
        _tombstone(key, step)
    return next(gone, None) is None


def expire_offsets(
    group: ClassicGroup | ConsumerGroup | StreamsGroup,
    offsets: OffsetStore,
    pending: PendingOffsets,
    step: Step,
) -> bool:
    """Removes expired offsets (KIP-211), until the step has MAX_REMOVED; True if no offset is left,
    and none is pending.

    Offsets live for offsets.retention.minutes: in a group without members since the last one
    left; in a topic that a group with members does not read (any more), in every topic of an empty
    group of KIP-848 or KIP-1071, and for consumers that manage their own partitions, from the
    commit on. A classic group whose subscription cannot be read, or that is in a rebalance, keeps
    its offsets. So does a partition that an open transaction may
    change: its tombstone would drop what the transaction commits.
    """
    topics = offsets.of_group(group.group_id)
    if not topics:
        return not pending.has_group(group.group_id)
    if not isinstance(group, ClassicGroup) or group.protocol_type is None:
        since_ms = None
    elif group.state is EMPTY:
        since_ms = group.state_timestamp_ms
    elif group.uses_consumer_protocol and group.subscribed is not None and group.state is STABLE:
        since_ms = None
    else:
        return False
    all_gone = not pending.has_group(group.group_id)
    for topic, partitions in topics.items():
        kept = group.is_subscribed(topic)
        for partition, value in partitions.items():
            if kept or not _is_expired(value, since_ms, step):
                all_gone = False
                continue
            key = OffsetCommitKey(group.group_id, topic, partition)
            if pending.has(*key):
                all_gone = False
            elif is_full(step):
                return False
            else:
                _tombstone(key, step)
    return all_gone


def is_full(step: Step) -> bool:
    """The step removes as many as one may."""
    return len(step.records) >= MAX_REMOVED


def _is_expired(value: OffsetCommitValue, since_ms: int | None, step: Step) -> bool:
    if value.expire_timestamp_ms != NO_TIMESTAMP:
        return step.now_ms >= value.expire_timestamp_ms
    start_ms = value.commit_timestamp_ms if since_ms is None else since_ms
    return step.now_ms - start_ms >= step.settings.offsets_retention_ms


def _tombstone(key: OffsetCommitKey, step: Step) -> None:
    """There may be very many of them, and each counts on its own."""
    step.is_atomic = False
    step.records.append(CoordinatorRecord(key, None))
