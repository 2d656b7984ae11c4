"""How the groups' runtime meets the node: its partitions of `__consumer_offsets`, its settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ottla.broker.coordinator import GroupCoordinators
from ottla.broker.group_shard import KeyAndValue, LogRecord
from ottla.broker.partition import Partition, Role
from ottla.config import BrokerConfig
from ottla.groups.settings import GroupSettings
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import OFFSETS_TOPIC
from ottla.records.build import build_batch
from ottla.records.header import read_header
from ottla.records.iterate import iterate_records
from ottla.records.record import Record

if TYPE_CHECKING:
    from ottla.broker.node import Node

READ_BYTES = 4 << 20
COMMITTED_WITHIN_MS = 60_000


class PartitionLog:
    """A partition of `__consumer_offsets` as its coordinator wants it: records in, records out."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._leadership = partition.leadership

    @property
    def high_watermark(self) -> int:
        return self._partition.settled_offset

    def append(self, records: Sequence[KeyAndValue], now_ms: int) -> int:
        """One batch; returns its last offset. Raises ApiError: NOT_LEADER_OR_FOLLOWER too where
        this broker led another time since, for then a later coordinator has read the log."""
        batch = build_batch([Record(0, now_ms, key, value) for key, value in records])
        max_bytes = self._partition.log.config.max_message_bytes
        if len(batch) > max_bytes:
            raise ApiError(ErrorCode.message_too_large, f"{len(batch)} bytes of {max_bytes}")
        headers = [read_header(batch)]
        appended = self._partition.append_own(batch, headers, now_ms, self._leadership)
        return appended.last_offset

    def read_all(self) -> Iterator[LogRecord]:
        """Every record from the log's start on."""
        log = self._partition.log
        offset, end_offset = log.start_offset, log.end_offset
        while offset < end_offset:
            data = log.read(offset, max_bytes=READ_BYTES).read()
            position = 0
            while position + 61 <= len(data):
                header = read_header(data, position)
                batch = memoryview(data)[position : position + header.size_bytes]
                if len(batch) < header.size_bytes:
                    break
                if header.count > 0 and not header.is_control:
                    for record in iterate_records(batch):
                        if record.offset >= offset:
                            yield LogRecord(record.offset, record.key, record.value)
                position += header.size_bytes
                offset = max(offset, header.next_offset)
            if position == 0:
                return  # compaction left nothing up to the end

    async def committed(self, offset: int) -> bool:
        """Returns when all in-sync replicas have it; False where another broker leads by then.

        Raises ApiError where too few replicas are in sync; the caller limits the time.
        """
        try:
            await self._partition.acknowledged_to(offset, self._leadership, COMMITTED_WITHIN_MS)
        except ApiError as error:
            if error.code is ErrorCode.not_leader_or_follower:
                return False
            raise
        return offset < self._partition.high_watermark


def group_coordinators(node: Node) -> GroupCoordinators:
    """The coordinators over this node's partitions."""
    return GroupCoordinators(
        group_settings(node.config),
        node.clock,
        lambda index: _open(node, index),
        lambda: _led(node),
        lambda: _count(node),
        random=node.random,
        on_commit=lambda *commit: _on_commit(node, *commit),
        on_loaded=lambda *found: _on_loaded(node, *found),
    )


def group_settings(config: BrokerConfig) -> GroupSettings:
    """The broker's settings as the groups' room has them."""
    return GroupSettings(
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        max_size=config.group_max_size,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * 60_000,
        offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
        offsets_topic_partitions=config.offsets_topic_num_partitions,
        offset_commit_timeout_ms=config.offsets_commit_timeout_ms,
    )


def _open(node: Node, index: int) -> PartitionLog:
    partition = node.partitions.get(OFFSETS_TOPIC, index)
    if partition is None or not _leads(partition):
        raise ApiError(ErrorCode.not_coordinator)
    return PartitionLog(partition)


def _leads(partition: Partition) -> bool:
    return partition.role is Role.LEADER


def _led(node: Node) -> Iterable[int]:
    return [each.index for each in node.partitions.of_topic(OFFSETS_TOPIC) if _leads(each)]


def _count(node: Node) -> int:
    topic = node.image.topic(OFFSETS_TOPIC)
    return node.config.offsets_topic_num_partitions if topic is None else len(topic.partitions)


def _on_commit(
    node: Node, group: str, topic: str, index: int, offset: int, metadata: str, now_ms: int
) -> None:
    partition = node.partitions.get(topic, index)
    if partition is not None:
        partition.timeline.committed(group, offset, metadata, now_ms)


def _on_loaded(node: Node, group: str, topic: str, index: int, offset: int, metadata: str) -> None:
    """Else the group's first commit after a restart would not know where it begins."""
    partition = node.partitions.get(topic, index)
    if partition is not None:
        partition.timeline.group_is_at(group, offset, metadata)
