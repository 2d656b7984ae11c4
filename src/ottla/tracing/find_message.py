"""Finds the message that a journey request means: by offset, by key, or the latest.

A partition's leader answers, because it has the most information. Another broker answers with the
error `not_leader` and the leader's id (null: the partition has none). A request without a partition
is answered for the partitions that this broker leads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

from ottla.config import BrokerConfig
from ottla.controller.image import NO_LEADER, ClusterImage
from ottla.journey.key_elsewhere import KeyElsewhere
from ottla.journey.moment import Document
from ottla.journey.partitioner import likely_partitions
from ottla.log.log import Log
from ottla.replica.partition import Partition
from ottla.replica.partitions import Partitions
from ottla.tracing.gather_facts import find_location, largest_timestamp
from ottla.tracing.key_list import ends_of, list_key
from ottla.tracing.key_search import elsewhere_of, find_elsewhere, find_newest

MAX_MARKERS_PASSED: Final = 100
"""Batches at the end of the log that are read to find the newest message."""
MAX_SUGGESTIONS: Final = 1000
"""Topic names in the response to a request for an unknown topic."""


class JourneyError(Exception):
    """The error that is returned instead of a journey, with its code and further fields."""

    def __init__(self, code: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.code = code
        self.more = more
        self.elsewhere: list[int] = []
        """The topic's partitions for which other brokers should be asked."""


class MessageQuery(NamedTuple):
    """Which message is meant: at most one of `offset`, `key` and `latest` is given.

    With `all_of_key` all messages of the key are listed instead of one being explained.
    """

    topic: str
    partition: int | None
    offset: int | None
    key: bytes | None
    latest: bool
    all_of_key: bool = False


class Cluster(Protocol):
    """The cluster and this broker's partitions, as this broker knows them now."""

    config: BrokerConfig
    partitions: Partitions

    @property
    def image(self) -> ClusterImage:
        """The metadata image; it may be another one after each wait."""


def deleted_meanwhile(topic: str) -> JourneyError:
    return JourneyError("unknown_topic", f"topic {topic!r} was deleted in the meantime")


def led_partitions(query: MessageQuery, cluster: Cluster) -> list[Partition]:
    """The topic's partitions that this broker leads, or the requested one. Raises JourneyError."""
    topic, image = query.topic, cluster.image.topic(query.topic)
    if image is None:
        names = sorted(cluster.image.topics)[:MAX_SUGGESTIONS]
        raise JourneyError("unknown_topic", f"there is no topic {topic!r}", topics=names)
    own = cluster.config.id
    led = [
        partition
        for partition in sorted(cluster.partitions.of_topic(topic), key=lambda one: one.index)
        if partition.index < len(image.partitions)
        and image.partitions[partition.index].leader == own
    ]
    requested, count = query.partition, len(image.partitions)
    if requested is None:
        if led:
            return led
        raise JourneyError("not_leader", f"this broker leads no partition of topic {topic!r}")
    if requested >= count:
        has = "only partition 0" if count == 1 else f"partitions 0 to {count - 1}"
        message = f"topic {topic!r} has no partition {requested}, it has {has}"
        raise JourneyError("unknown_partition", message, partitions=offset_ranges(led))
    for partition in led:
        if partition.index == requested:
            return [partition]
    leader = image.partitions[requested].leader
    message = f"partition {requested} of topic {topic!r} is led by another broker"
    if leader == NO_LEADER:
        message = f"partition {requested} of topic {topic!r} has no leader"
    raise JourneyError("not_leader", message, leader=None if leader == NO_LEADER else leader)


def led_elsewhere(query: MessageQuery, cluster: Cluster) -> list[int]:
    """The topic's partitions that other brokers lead, or nobody; none if one was requested."""
    image = cluster.image.topic(query.topic)
    if image is None or query.partition is not None:
        return []
    own = cluster.config.id
    return [index for index, state in enumerate(image.partitions) if state.leader != own]


def offset_ranges(partitions: Sequence[Partition]) -> list[Document]:
    """The start and end offset of each partition."""
    return [
        {
            "partition": partition.index,
            "start_offset": partition.log.start_offset,
            "end_offset": partition.log.end_offset,
        }
        for partition in partitions
    ]


async def find_message(
    query: MessageQuery, partitions: list[Partition], cluster: Cluster
) -> tuple[Partition, int, KeyElsewhere | None]:
    """The partition and offset of the message, and what a search for its key found besides.

    Raises JourneyError and ApiError.
    """
    if query.key is not None:
        partition, offset, elsewhere = await find_key(
            query.key, partitions, led_elsewhere(query, cluster)
        )
        return partition, offset, elsewhere if query.partition is None else None
    if query.latest:
        filled = [one for one in partitions if one.log.end_offset > one.log.start_offset]
        if not filled:
            message = f"topic {query.topic!r} has no records"
            raise JourneyError("empty", message, partitions=offset_ranges(partitions))
        newest = max(filled, key=newest_ms)
        return newest, await newest_offset(newest.log), None
    if query.offset is None:
        message = "give an offset, a key, or latest"
        raise JourneyError("which_offset", message, partitions=offset_ranges(partitions))
    image = cluster.image.topic(query.topic)
    count = len(image.partitions) if image else 0
    if query.partition is None and count > 1:
        message = f"give the partition of offset {query.offset}"
        raise JourneyError("which_offset", message, partitions=offset_ranges(partitions))
    return partitions[0], query.offset, None


async def newest_offset(log: Log) -> int:
    """The last offset that has a record, and not a transaction marker, as far as
    `MAX_MARKERS_PASSED` allow; the last one if there are only markers. Raises ApiError.
    """
    offset = last = log.end_offset - 1
    for _ in range(MAX_MARKERS_PASSED):
        location = await find_location(log, offset)
        if location is None or not location.header.is_control:
            return offset
        offset = location.header.base_offset - 1
        if offset < log.start_offset:
            break
    return last


def newest_ms(partition: Partition) -> int:
    """The largest timestamp of the last segment that has records."""
    log = partition.log
    return largest_timestamp(next(one for one in reversed(log.segments) if one.size_bytes))


async def find_key(
    key: bytes, partitions: list[Partition], led_by_others: Sequence[int]
) -> tuple[Partition, int, KeyElsewhere]:
    """The newest record with the key by its timestamp, and those of the other partitions. Raises
    JourneyError and ApiError.
    """
    hits, searched = await find_newest(in_likely_order(key, partitions), key)
    if not hits:
        raise key_not_found(ends_of(searched))
    newest = max(hits, key=lambda hit: hit.timestamp_ms)
    hits.remove(newest)
    partition = next(one for one in partitions if one.index == newest.partition)
    return partition, newest.offset, elsewhere_of(hits, searched, led_by_others)


async def find_key_elsewhere(
    key: bytes, topic: str, partition: int, cluster: Cluster
) -> KeyElsewhere:
    """The same in the topic's other partitions than one. Raises JourneyError and ApiError."""
    query = MessageQuery(topic, None, None, key, latest=False)
    led = [one for one in led_partitions(query, cluster) if one.index != partition]
    return await find_elsewhere(in_likely_order(key, led), key, led_elsewhere(query, cluster))


async def list_messages(key: bytes, topic: str, partitions: list[Partition]) -> Document:
    """All records with the key, or the newest ones. Raises JourneyError and ApiError."""
    document = await list_key(topic, key, in_likely_order(key, partitions))
    if not document["messages"]:
        raise key_not_found(document["searched"])
    return document


def in_likely_order(key: bytes, partitions: list[Partition]) -> list[Partition]:
    """Those first that a common partitioner would choose for the key."""
    by_index = {partition.index: partition for partition in partitions}
    likely = likely_partitions(key, len(partitions)) if len(partitions) > 1 else []
    order = [by_index.pop(index) for index in likely if index in by_index]
    return [*order, *by_index.values()]


def key_not_found(searched: list[Document]) -> JourneyError:
    message = "no record has this key"
    if not all(one["whole"] for one in searched):
        message = "no record has this key among the newest; older ones were not searched"
    return JourneyError("key_not_found", message, searched=searched)
