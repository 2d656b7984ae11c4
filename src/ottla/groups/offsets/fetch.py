"""OffsetFetch: what a group has committed. A group or partition without offsets is no error."""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from ottla.groups.offsets.pending import PendingOffsets
from ottla.groups.offsets.store import OffsetStore
from ottla.groups.stored import NO_LEADER_EPOCH, OffsetCommitValue
from ottla.protocol.errors import ErrorCode

NO_OFFSET = -1


class FetchingMember(NamedTuple):
    """Who fetches, where it says so (OffsetFetch 9 and later)."""

    member_id: str | None
    epoch: int


NO_MEMBER: Final = FetchingMember(None, -1)


class FetchedOffset(NamedTuple):
    """The offset of one partition; offset -1 where nothing was committed."""

    partition: int
    offset: int = NO_OFFSET
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    error: ErrorCode = ErrorCode.none
    """UNSTABLE_OFFSET_COMMIT: a transaction that is open may change the offset (KIP-447)."""


def fetch(
    offsets: OffsetStore,
    unstable: PendingOffsets | None,
    group: str,
    topic: str,
    topic_id: UUID | None,
    partitions: tuple[int, ...],
) -> tuple[FetchedOffset, ...]:
    """The offsets of these partitions, without those of a topic that has been deleted since.

    `topic_id` None: any topic of this name. `unstable`: partitions with an offset in there are
    refused; None if the client does not ask for stable offsets.
    """
    committed = offsets.of_group(group).get(topic, {})
    if unstable is None or not unstable.has_group(group):
        return tuple(
            _fetched(partition, committed.get(partition), topic_id) for partition in partitions
        )
    return tuple(
        _unstable(partition)
        if unstable.has(group, topic, partition)
        else _fetched(partition, committed.get(partition), topic_id)
        for partition in partitions
    )


def fetch_all(
    offsets: OffsetStore, unstable: PendingOffsets | None, group: str
) -> dict[str, tuple[FetchedOffset, ...]]:
    """Topic to everything that the group has committed in it.

    As in Kafka, a partition that has nothing but a pending offset is left out.
    """
    return {
        topic: fetch(offsets, unstable, group, topic, None, tuple(committed))
        for topic, committed in offsets.of_group(group).items()
    }


def _unstable(partition: int) -> FetchedOffset:
    return FetchedOffset(partition, error=ErrorCode.unstable_offset_commit)


def _fetched(
    partition: int, value: OffsetCommitValue | None, topic_id: UUID | None
) -> FetchedOffset:
    if value is None:
        return FetchedOffset(partition)
    if None not in (value.topic_id, topic_id) and value.topic_id != topic_id:
        return FetchedOffset(partition)
    return FetchedOffset(partition, value.offset, value.leader_epoch, value.metadata)
