"""The replicas in the log directories of brokers, and the sizes of topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ottla.client.admin.log_dirs import LogDir, StoredReplica
from ottla.client.topic_partition import TopicPartition


def replicas_of(folders: Sequence[LogDir]) -> list[tuple[LogDir, StoredReplica]]:
    """Each replica with its folder, by topic, partition and broker."""
    found = [(folder, each) for folder in folders for each in folder.replicas]
    return sorted(found, key=lambda pair: (pair[1].topic, pair[1].partition, pair[0].broker))


def leader_sizes(folders: Sequence[LogDir], leaders: Mapping[TopicPartition, int]) -> Counter[str]:
    """The bytes of each topic, counting each partition once: as its leader stores it."""
    sizes: Counter[str] = Counter()
    for folder, each in replicas_of(folders):
        key = TopicPartition(each.topic, each.partition)
        if not each.is_future and leaders.get(key) == folder.broker:
            sizes[each.topic] += each.size_bytes
    return sizes
