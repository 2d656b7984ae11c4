"""What groups lose soon, for /metrics: records that they have not read, and that retention deletes.

A broker reports the groups whose offsets it keeps (its partitions of `__consumer_offsets` and of
`__share_group_state`), on partitions of which it has a replica. It looks once in FRESH_MS, at the
oldest segments first, and asks for offsets only where some go. Of very many groups it looks at the
partitions alone that lose records next (MAX_LOOKUPS), and says how many it left out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from prometheus_client.core import GaugeMetricFamily, Metric

from ottla.log.log import Log
from ottla.log.outlook import DAY_MS, Going, Piece, outlook
from ottla.protocol.errors import ApiError
from ottla.protocol.internal_topics import INTERNAL_TOPICS
from ottla.replica.partition import Partition
from ottla.runtime.slices import SLICE, Slices, parts
from ottla.share.shard import ShareShard
from ottla.share.stored import ShareKey
from ottla.tracing.gather_facts import segment_facts

if TYPE_CHECKING:
    from ottla.node.node import Node

logger = logging.getLogger("ottla.metrics")

FRESH_MS: Final = 60_000
WITHIN_MS: Final = DAY_MS
LOOKS_WITHIN_S: Final = 5.0
SHARD_WITHIN_S: Final = 1.0
"""For one partition of `__share_group_state`, which may still be loaded."""
NEVER: Final = -1.0
MAX_PARTITIONS: Final = 1_000
"""Of which records go within the time; those that lose some next are looked at."""
MAX_LOOKUPS: Final = 500_000
"""Groups x partitions: half a second of CPU where all groups are behind. Of 5,000 groups, the 100
partitions that lose records next."""
MAX_STATES_AT_ONCE: Final = 10_000
"""Of share groups."""
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
        self._left_out = 0
        """Partitions that lose records, and were not compared with the offsets of groups."""
        self._looked_ms: int | None = None
        self._whole_ms: int | None = None
        """When all groups were looked at for the last time."""

    async def gather(self) -> list[Metric]:
        """As of the last minute. What is not known any more is not told: an alert on old values
        would stay silent while records go.
        """
        now_ms = self._node.clock.monotonic_ms()
        if self._looked_ms is None or now_ms - self._looked_ms >= FRESH_MS:
            self._looked_ms = now_ms
            self._known, self._left_out = (), 0
            try:
                async with asyncio.timeout(LOOKS_WITHIN_S):
                    self._known, is_whole = await self._look()
            except (ApiError, TimeoutError) as error:
                logger.warning(
                    "what groups lose soon is not known: %s", error or "it took too long"
                )
            else:
                if is_whole:
                    self._whole_ms = now_ms
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
        left_out = GaugeMetricFamily(
            "ottla_group_unread_going_left_out",
            "Partitions that lose records within a day, and were too many to be looked at",
            value=self._left_out,
        )
        age = GaugeMetricFamily(
            "ottla_group_unread_going_age_seconds",
            "How long ago all groups were looked at for this; -1: not yet",
            value=NEVER if self._whole_ms is None else (now_ms - self._whole_ms) / 1000,
        )
        for loss in self._known:
            records.add_metric([loss.group, loss.topic], loss.records)
            seconds.add_metric([loss.group, loss.topic], loss.in_ms / 1000)
        return [records, seconds, left_out, age]

    async def _look(self) -> tuple[Sequence[TopicLoss], bool]:
        """What they lose, and whether all groups were looked at. Raises ApiError."""
        all_going = await self._going()
        soonest = nsmallest(MAX_PARTITIONS, all_going, key=lambda each: all_going[each][0].in_ms)
        going = {each: all_going[each] for each in soonest}
        slices = Slices()
        shared: dict[tuple[str, str], TopicLoss] = {}
        starts, is_whole = await self._share_starts(going)
        for partition, group, offset in starts:
            await slices.count()
            _count(shared, group, partition, offset, going[partition])
        found = nsmallest(MAX_SERIES, shared.values())
        offsets = self._node.groups.late_offsets
        looked_at = soonest[: max(1, MAX_LOOKUPS // max(1, await offsets.count()))]
        by_name = {(each.topic, each.index): each for each in looked_at}
        ends: dict[str, dict[int, int]] = {}
        for each in looked_at:
            ends.setdefault(each.topic, {})[each.index] = going[each][-1].next_offset
        async for some in offsets.late(ends):
            losses: dict[tuple[str, str], TopicLoss] = {}
            for one in some:
                await slices.count()
                partition = by_name[one.topic, one.partition]
                _count(losses, one.group, partition, one.offset, going[partition])
            found = nsmallest(MAX_SERIES, (*found, *losses.values()))
        self._left_out = len(all_going) - len(looked_at)
        return found, is_whole

    async def _going(self) -> dict[Partition, list[Going]]:
        """The partitions of which records go."""
        found: dict[Partition, list[Going]] = {}
        slices = Slices()
        now_ms = self._node.clock.now_ms()
        for partition in list(self._node.partitions):
            log = partition.log
            await slices.count(min(1 + len(log.segments), SLICE))
            if partition.topic in INTERNAL_TOPICS or log.is_closed or not _has_limit(log):
                continue
            try:
                its = outlook(_pieces(log), log.config, now_ms, WITHIN_MS)
            except ApiError:
                continue  # its disk has failed, which is told elsewhere
            if its and log.start_offset < log.end_offset:
                found[partition] = its
        return found

    async def _share_starts(
        self, partitions: Iterable[Partition]
    ) -> tuple[list[tuple[Partition, str, int]], bool]:
        """Where the share groups are of which this broker keeps the state, and whether these are
        all: one shard that does not answer must not hide the others.
        """
        keys: dict[tuple[UUID, int], Partition] = {}
        for partition in partitions:
            topic = self._node.image.topic(partition.topic)
            if topic is not None:
                keys[topic.topic_id, partition.index] = partition
        if not keys:
            return [], True
        found: list[tuple[Partition, str, int]] = []
        is_whole = True
        topic_ids = tuple(dict.fromkeys(topic_id for topic_id, _ in keys))
        runtime = self._node.shares.runtime
        for index in runtime.led_indexes():
            try:
                async with asyncio.timeout(SHARD_WITHIN_S):
                    # What is not committed yet counts as well: a partition with too few replicas
                    # in sync commits nothing.
                    shard = await runtime.decide_appended(index, lambda shard, _: shard)
            except (ApiError, TimeoutError):
                is_whole = False
                continue
            for topic_id in topic_ids:
                for some in parts(tuple(shard.of_topic(topic_id)), MAX_STATES_AT_ONCE):
                    found += _starts(shard, some, keys)
                    await asyncio.sleep(0)
        return found, is_whole


def _has_limit(log: Log) -> bool:
    config = log.config
    return config.cleanup_delete and max(config.retention_ms, config.retention_bytes) >= 0


def _pieces(log: Log) -> list[Piece]:
    """Raises ApiError KAFKA_STORAGE_ERROR."""
    facts = segment_facts(log, log.end_offset)
    return [Piece(each.next_offset, each.size_bytes, each.largest_timestamp_ms) for each in facts]


def _starts(
    shard: ShareShard, some: Iterable[ShareKey], keys: Mapping[tuple[UUID, int], Partition]
) -> list[tuple[Partition, str, int]]:
    """Where share groups are with these partitions; those that have not begun have no offset."""
    found = []
    for key in some:
        partition, known = keys.get((key.topic_id, key.partition)), shard.known.get(key)
        if partition is not None and known is not None and known.state.start_offset >= 0:
            found.append((partition, key.group_id, known.state.start_offset))
    return found


def _count(
    found: dict[tuple[str, str], TopicLoss],
    group: str,
    partition: Partition,
    offset: int,
    going: Sequence[Going],
) -> None:
    """Adds what the group loses of one partition."""
    loss = _loss(group, partition.topic, max(offset, partition.log.start_offset), going)
    if loss is not None:
        before = found.get((group, partition.topic))
        found[group, partition.topic] = loss if before is None else _sum(before, loss)


def _loss(group: str, topic: str, offset: int, going: Sequence[Going]) -> TopicLoss | None:
    first = next(_after(offset, going), None)
    if first is None:
        return None
    return TopicLoss(first.in_ms, group, topic, going[-1].next_offset - offset)


def _after(offset: int, going: Sequence[Going]) -> Iterator[Going]:
    return (each for each in going if each.next_offset > offset)


def _sum(one: TopicLoss, other: TopicLoss) -> TopicLoss:
    return one._replace(in_ms=min(one.in_ms, other.in_ms), records=one.records + other.records)
