"""When `retention.bytes` will remove records: an estimate, for it depends on what will be written.

A record goes, with its segment, once the log behind it holds `retention.bytes`. Known from outside:
the size of the leader's log (DescribeLogDirs), its offsets, and how many records came lately
(ListOffsets by time). Assumed: all records have one size, and as many come as in the last hour or
the last day, whichever were more. Where segments are large, records go later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ottla.client.admin.log_dirs import log_dirs
from ottla.client.admin.offsets import Offsets, asked_offsets
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition

HOUR_MS: Final = 3_600_000
WINDOWS_MS: Final = (HOUR_MS, 24 * HOUR_MS)


class Growth(NamedTuple):
    """Of one partition."""

    start: int
    end: int
    size_bytes: int
    keeps_bytes: int
    """retention.bytes"""
    records_per_ms: float

    @property
    def record_bytes(self) -> float:
        """Of one record, on average; more than 0."""
        return max(self.size_bytes / max(self.end - self.start, 1), 1.0)

    @property
    def kept_records(self) -> float:
        """That many are in `keeps_bytes`."""
        return self.keeps_bytes / self.record_bytes

    def survivor(self, within_ms: int) -> int:
        """The first record that is still kept after this time."""
        end = self.end + self.records_per_ms * within_ms
        return min(max(int(end - self.kept_records), self.start), self.end)

    def goes_in_ms(self, offset: int) -> int | None:
        """When the record may go; 0: now. None: not as long as nothing is written."""
        missing = self.kept_records - (self.end - offset - 1)
        if missing <= 0:
            return 0
        return int(missing / self.records_per_ms) if self.records_per_ms else None


def growths(
    client: Client,
    keeps_bytes: Mapping[TopicPartition, int],
    starts: Offsets,
    ends: Offsets,
    now_ms: int,
) -> tuple[dict[TopicPartition, Growth], list[TopicPartition]]:
    """Of the partitions with a limit of bytes; and those whose leaders do not say their sizes, or
    how they grow.
    """
    partitions = [each for each in keeps_bytes if each in starts and each in ends]
    if not partitions:
        return {}, []
    sizes = _sizes(client, partitions)
    rates = _rates(client, partitions, ends, now_ms)
    found = {
        each: Growth(starts[each], ends[each], sizes[each], keeps_bytes[each], rates[each])
        for each in partitions
        if each in sizes and each in rates
    }
    return found, [each for each in partitions if each not in found]


def _sizes(client: Client, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """Of the leaders' logs."""
    leaders = client.metadata(sorted({each.topic for each in partitions})).leaders
    asked: dict[str, list[int]] = {}
    for topic, index in partitions:
        asked.setdefault(topic, []).append(index)
    brokers = {leaders[each] for each in partitions if each in leaders}
    folders, _ = log_dirs(client, brokers=brokers, partitions=asked)
    return {
        partition: replica.size_bytes
        for folder in folders
        for replica in folder.replicas
        if not replica.is_future
        and leaders.get(partition := TopicPartition(replica.topic, replica.partition))
        == folder.broker
    }


def _rates(
    client: Client, partitions: Sequence[TopicPartition], ends: Offsets, now_ms: int
) -> dict[TopicPartition, float]:
    """Records in a millisecond."""
    rates: dict[TopicPartition, float] = {}
    for window_ms in WINDOWS_MS:
        times = dict.fromkeys(partitions, max(now_ms - window_ms, 0))
        found, _ = asked_offsets(client, times, client.patience.answer_s)
        for partition, offset in found.items():
            recent = 0 if offset < 0 else max(ends[partition] - offset, 0)
            rates[partition] = max(rates.get(partition, 0.0), recent / window_ms)
    return rates
