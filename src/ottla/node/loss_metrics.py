"""What groups lose soon, for /metrics: records that they have not read, and that retention deletes.

A broker reports the groups whose offsets it keeps (its partitions of `__consumer_offsets` and of
`__share_group_state`), on partitions of which it has a replica. It looks once in FRESH_MS, at the
oldest segments first, and asks for offsets only where some go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container, Iterable, Iterator, Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from prometheus_client.core import GaugeMetricFamily, Metric

from ottla.log.log import Log
from ottla.log.outlook import DAY_MS, Going, Piece, outlook
from ottla.protocol.errors import ApiError
from ottla.protocol.internal_topics import INTERNAL_TOPICS
from ottla.replica.partition import Partition
from ottla.runtime.slices import Slices
from ottla.share.shard import ShareShard
from ottla.tracing.gather_facts import segment_facts

if TYPE_CHECKING:
    from ottla.node.node import Node

logger = logging.getLogger("ottla.metrics")

FRESH_MS: Final = 60_000
WITHIN_MS: Final = DAY_MS
OFFSETS_WITHIN_MS: Final = 1_000
LOOKS_WITHIN_S: Final = 5.0
MAX_PARTITIONS: Final = 1_000
"""Of which records go within the time; those that lose some next are looked at."""
MAX_SERIES: Final = 1_000
"""Groups and topics; those that lose records next are told."""


class TopicLoss(NamedTuple):
    """What a group loses of a topic: the first of the records goes in `in_ms`."""

    in_ms: int
    group: str
    topic: str
    records: int


class LossMetrics:
    """For the event loop's thread only."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._known: Sequence[TopicLoss] = ()
        self._known_ms: int | None = None

    async def gather(self) -> list[Metric]:
        """As of the last minute."""
        now_ms = self._node.clock.monotonic_ms()
        if self._known_ms is None or now_ms - self._known_ms >= FRESH_MS:
            self._known_ms = now_ms
            try:
                async with asyncio.timeout(LOOKS_WITHIN_S):
                    self._known = await self._look()
            except (ApiError, TimeoutError) as error:
                logger.warning(
                    "what groups lose soon is not known: %s", error or "it took too long"
                )
        labels = ["group", "topic"]
        records = GaugeMetricFamily(
            "ottla_group_unread_going",
            "Records that a group has not read and that retention deletes within a day",
            labels=labels,
        )
        seconds = GaugeMetricFamily(
            "ottla_group_unread_going_seconds",
            "In how long the first of them goes, at the earliest",
            labels=labels,
        )
        for loss in self._known:
            records.add_metric([loss.group, loss.topic], loss.records)
            seconds.add_metric([loss.group, loss.topic], loss.in_ms / 1000)
        return [records, seconds]

    async def _look(self) -> Sequence[TopicLoss]:
        going = await self._going()
        starts = await self._share_starts(going)
        found: dict[tuple[str, str], TopicLoss] = {}
        for partition, its in going.items():
            positions = await self._positions(partition)
            for group, offset in (*positions, *starts.get(partition, ())):
                loss = _loss(group, partition.topic, max(offset, partition.log.start_offset), its)
                if loss is not None:
                    before = found.get((group, partition.topic))
                    found[group, partition.topic] = loss if before is None else _sum(before, loss)
        return nsmallest(MAX_SERIES, found.values())

    async def _going(self) -> dict[Partition, list[Going]]:
        """The partitions of which records go, those that lose some next."""
        found: dict[Partition, list[Going]] = {}
        slices = Slices()
        now_ms = self._node.clock.now_ms()
        for partition in list(self._node.partitions):
            await slices.count()
            log = partition.log
            if partition.topic in INTERNAL_TOPICS or log.is_closed or not _has_limit(log):
                continue
            try:
                its = outlook(_pieces(log), log.config, now_ms, WITHIN_MS)
            except ApiError:
                continue  # its disk has failed, which is told elsewhere
            if its and log.start_offset < log.end_offset:
                found[partition] = its
        soonest = nsmallest(MAX_PARTITIONS, found, key=lambda each: found[each][0].in_ms)
        return {each: found[each] for each in soonest}

    async def _positions(self, partition: Partition) -> list[tuple[str, int]]:
        """Of each group of which this broker keeps the offset."""
        by_shard = await self._node.groups.offsets_of(
            partition.topic, partition.index, OFFSETS_WITHIN_MS
        )
        return [
            (group, value.offset) for shard in by_shard.values() for group, value in shard.items()
        ]

    async def _share_starts(
        self, partitions: Iterable[Partition]
    ) -> dict[Partition, list[tuple[str, int]]]:
        """Where the share groups are of which this broker keeps the state."""
        keys: dict[tuple[UUID, int], Partition] = {}
        for partition in partitions:
            topic = self._node.image.topic(partition.topic)
            if topic is not None:
                keys[topic.topic_id, partition.index] = partition
        if not keys:
            return {}
        found: dict[Partition, list[tuple[str, int]]] = {}
        by_shard = await self._node.shares.runtime.decide_in_each(
            lambda shard, _: _starts(shard, keys)
        )
        for key, group, offset in (each for starts in by_shard for each in starts):
            found.setdefault(keys[key], []).append((group, offset))
        return found


def _has_limit(log: Log) -> bool:
    config = log.config
    return config.cleanup_delete and max(config.retention_ms, config.retention_bytes) >= 0


def _pieces(log: Log) -> list[Piece]:
    """Raises ApiError KAFKA_STORAGE_ERROR."""
    facts = segment_facts(log, log.end_offset)
    return [Piece(each.next_offset, each.size_bytes, each.largest_timestamp_ms) for each in facts]


def _starts(
    shard: ShareShard, keys: Container[tuple[UUID, int]]
) -> list[tuple[tuple[UUID, int], str, int]]:
    """Where share groups are with these partitions; those that have not begun have no offset."""
    return [
        ((key.topic_id, key.partition), key.group_id, known.state.start_offset)
        for key, known in shard.known.items()
        if (key.topic_id, key.partition) in keys and known.state.start_offset >= 0
    ]


def _loss(group: str, topic: str, offset: int, going: Sequence[Going]) -> TopicLoss | None:
    first = next(_after(offset, going), None)
    if first is None:
        return None
    return TopicLoss(first.in_ms, group, topic, going[-1].next_offset - offset)


def _after(offset: int, going: Sequence[Going]) -> Iterator[Going]:
    return (each for each in going if each.next_offset > offset)


def _sum(one: TopicLoss, other: TopicLoss) -> TopicLoss:
    return one._replace(in_ms=min(one.in_ms, other.in_ms), records=one.records + other.records)
