"""What share groups have of one record, as the leader of its partition knows it (KIP-932).

The leader has the state of the groups that read the partition now, and what it noted lately. Of the
others it asks the share coordinators.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol
from uuid import UUID

from ottla.coordinator.share_parts import ShareParts
from ottla.journey.shared import MAX_GROUPS, SharedFacts
from ottla.protocol.errors import ApiError
from ottla.replica.share_history import Known
from ottla.replica.share_session import TopicPartition
from ottla.replica.shared_partitions import SharedPartitions
from ottla.share.share_partition import StoredState
from ottla.share.stored import NO_EPOCH, ShareKey

WITHIN_S: Final = 0.9


class SharingBroker(Protocol):
    """The parts of a broker that know its share groups."""

    shares: ShareParts
    shared_partitions: SharedPartitions


async def shared_facts(
    names: Sequence[str], topic_id: UUID, partition: int, offset: int, broker: SharingBroker
) -> list[SharedFacts]:
    """Of these groups, and of those that share the partition here, or did lately, in order."""
    here = broker.shared_partitions.groups_of(TopicPartition(topic_id, partition))
    lately = broker.shared_partitions.history.groups_of(topic_id, partition)
    groups = sorted({*names, *here, *lately})[:MAX_GROUPS]
    keys = [ShareKey(group, topic_id, partition) for group in groups]
    return list(await asyncio.gather(*(_facts(key, offset, broker) for key in keys)))


async def _facts(key: ShareKey, offset: int, broker: SharingBroker) -> SharedFacts:
    known = broker.shared_partitions.history.of(key, offset)
    partition = TopicPartition(key.topic_id, key.partition)
    shared = broker.shared_partitions.known(key.group_id, partition)
    found = None if shared is None else shared.where(offset)
    if found is not None:
        where, start, end = found
        return _told(key, SharedFacts(key.group_id, start, end, *where), known)
    try:
        async with asyncio.timeout(WITHIN_S):
            stored = await broker.shares.persister.read(key, NO_EPOCH)
    except (ApiError, TimeoutError):
        return _told(key, SharedFacts(key.group_id, None), known)
    return _told(key, _of_stored(key.group_id, stored, offset), known)


def _told(key: ShareKey, facts: SharedFacts, known: Known) -> SharedFacts:
    return facts._replace(notes=known.notes, forgotten_before_ms=known.since_ms)


def _of_stored(group: str, stored: StoredState, offset: int) -> SharedFacts:
    """`start_offset` -1: the group has not begun to read the partition."""
    end = stored.batches[-1].last + 1 if stored.batches else stored.start_offset
    for batch in stored.batches:
        if batch.first <= offset <= batch.last:
            return SharedFacts(group, stored.start_offset, end, batch.state, batch.delivery_count)
    if stored.start_offset <= offset < end:
        # Between what is stored: it was handed out, and nobody has said what became of it.
        return SharedFacts(group, stored.start_offset, offset)
    return SharedFacts(group, stored.start_offset, end)
