"""How many offsets each topic has, and how many bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.admin.log_dirs import log_dirs
from ottla.client.admin.offsets import EARLIEST, LATEST, known_offsets
from ottla.client.admin.stored_replicas import leader_sizes
from ottla.client.client import Client
from ottla.client.metadata import Topic
from ottla.client.topic_partition import TopicPartition


class TopicSize(NamedTuple):
    """None: the leader of a partition did not say."""

    offsets: int | None
    """From the first to the end; records are fewer after compaction and with transactions."""
    size_bytes: int | None
    """Of one replica of each partition, its leader's."""


def topic_sizes(
    client: Client, topics: Mapping[str, Topic]
) -> tuple[dict[str, TopicSize], dict[int, str]]:
    """The sizes of these topics; and for brokers that could not be asked, the reason as a part of a
    sentence.
    """
    leaders = {
        TopicPartition(name, index): partition.leader
        for name, topic in topics.items()
        for index, partition in topic.partitions.items()
    }
    led = [each for each, leader in leaders.items() if leader >= 0]
    (first, end), why = known_offsets(client, led, EARLIEST, LATEST)
    folders, silent = log_dirs(
        client,
        partitions={name: sorted(topic.partitions) for name, topic in topics.items()},
    )
    sizes = leader_sizes(folders, leaders)
    found: dict[str, TopicSize] = {}
    for name, topic in topics.items():
        partitions = [TopicPartition(name, index) for index in topic.partitions]
        is_counted = all(each in first and each not in why for each in partitions)
        is_sized = all(leaders[each] >= 0 and leaders[each] not in silent for each in partitions)
        found[name] = TopicSize(
            sum(end[each] - first[each] for each in partitions) if is_counted else None,
            sizes[name] if is_sized else None,
        )
    return found, silent
