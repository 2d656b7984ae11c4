"""`ottla topic list --sizes`: how many offsets each topic has, and how many bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.cli.client import Connection
from ottla.cli.offsets import EARLIEST, LATEST, shown_offsets
from ottla.cli.screen import note
from ottla.cli.sizes import Size
from ottla.cli.stored_replicas import leader_sizes
from ottla.client.admin.log_dirs import log_dirs
from ottla.client.topic_partition import TopicPartition


class TopicSize(NamedTuple):
    """None: the leader of a partition did not say."""

    offsets: int | None
    """From the first to the end; records are fewer after compaction and with transactions."""
    size_bytes: Size | None
    """Of one replica of each partition, its leader's."""


def topic_sizes(connection: Connection, topics: Mapping[str, Any]) -> dict[str, TopicSize]:
    """The sizes of these topics; says why if something is unknown."""
    leaders = {
        TopicPartition(name, index): partition.leader
        for name, topic in topics.items()
        for index, partition in topic.partitions.items()
    }
    led = [place for place, leader in leaders.items() if leader >= 0]
    (first, end), why = shown_offsets(connection, led, EARLIEST, LATEST)
    folders, silent = log_dirs(
        connection.client,
        partitions={name: sorted(topic.partitions) for name, topic in topics.items()},
    )
    for number, reason in silent.items():
        note(f"broker {number}: {reason}.")
    sizes = leader_sizes(folders, leaders)
    found: dict[str, TopicSize] = {}
    for name, topic in topics.items():
        places = [TopicPartition(name, index) for index in topic.partitions]
        is_counted = all(place in first and place not in why for place in places)
        is_sized = all(leaders[place] >= 0 and leaders[place] not in silent for place in places)
        found[name] = TopicSize(
            sum(end[place] - first[place] for place in places) if is_counted else None,
            Size(sizes[name]) if is_sized else None,
        )
    return found
