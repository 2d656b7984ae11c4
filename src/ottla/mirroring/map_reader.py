"""Follows the topic of the offset map, and keeps the map of each partition in memory."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_right
from typing import Any, Final
from uuid import uuid4

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as PartitionAt

from ottla.client.topic_partition import TopicPartition
from ottla.messaging.librdkafka import LibrdkafkaError, explain, failure, quiet, rejected
from ottla.mirroring.clusters import Side
from ottla.mirroring.offset_map import OffsetMap
from ottla.mirroring.offset_map_records import read_entry
from ottla.mirroring.position import Origin, Position

BATCH_RECORDS: Final = 5_000
READ_WITHIN_S: Final = 60.0
POLL_S: Final = 0.2
MIN_TIDIED: Final = 100
"""Entries of a partition."""


class MapReader:
    """A consumer of committed records, without a group, for one thread."""

    def __init__(self, side: Side, topic: str) -> None:
        """Raises RejectedSettingsError."""
        self.maps: dict[TopicPartition, OffsetMap] = {}
        """By partition of the source."""
        self._origins: dict[TopicPartition, Origin] = {}
        self._begins: dict[TopicPartition, array[int]] = {}
        """The first source offset of each entry, in order; 8 bytes each."""
        settings = {
            "group.id": f"ottla-mirror-reader-{uuid4()}",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            **quiet(side.settings),
        }
        try:
            self._consumer = Consumer(settings)
        except KafkaException as error:
            raise rejected(error, "read the offset map") from error
        self._consumer.assign([PartitionAt(topic, 0, OFFSET_BEGINNING)])
        self._read_to = -1

    def read_to(self, end: int) -> None:
        """Reads all before this offset of the topic. Raises LibrdkafkaError."""
        deadline = time.monotonic() + READ_WITHIN_S
        while self._read_to < end:
            try:
                events: list[Any] = self._consumer.consume(BATCH_RECORDS, POLL_S)
            except KafkaException as error:
                raise failure(error, "read the offset map") from error
            for event in events:
                self._take(event)
            if events:
                deadline = time.monotonic() + READ_WITHIN_S
            elif time.monotonic() > deadline:
                raise LibrdkafkaError("cannot read the offset map at the target: no response.")

    def _take(self, event: Any) -> None:
        error = event.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                self._read_to = max(self._read_to, event.offset())
            elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED and not error.retriable():
                # librdkafka asks for a coordinator that nobody needs.
                raise LibrdkafkaError(f"cannot read the offset map: {explain(error)}")
            return
        self._read_to = max(self._read_to, event.offset() + 1)
        entry = read_entry(event.key() or b"", event.value() or b"")
        if entry is None:
            return
        found = self.maps.setdefault(entry.partition, OffsetMap())
        begins = self._begins.setdefault(entry.partition, array("q"))
        if entry.is_start:
            found.begin(entry.runs[0].source, entry.runs[0].target)
            del begins[:]
            if entry.origin is None:
                self._origins.pop(entry.partition, None)
            else:
                self._origins[entry.partition] = entry.origin
        elif entry.runs and (not begins or entry.runs[0].source >= begins[-1]):
            found.extend(entry.runs)
            if not begins or entry.runs[0].source > begins[-1]:
                begins.append(entry.runs[0].source)

    def position(self, partition: TopicPartition) -> Position | None:
        """Behind the last record that the mirror has written; None if it has begun with none, or
        an earlier version has, which did not note where it is from.
        """
        origin = self._origins.get(partition)
        return None if origin is None else Position(self.maps[partition].source_end, origin)

    def topics(self) -> dict[str, Origin | None]:
        """The source's topics that are in the map, and where they are from if that is known."""
        found: dict[str, Origin | None] = {}
        for each in self.maps:
            origin = self._origins.get(each)
            found[each.topic] = origin if found.get(each.topic, origin) is not None else None
        return found

    def may_be_tidied(self, partition: TopicPartition) -> bool:
        """Whether there are enough entries that it is worth a look."""
        return len(self._begins[partition]) >= MIN_TIDIED

    def forget_before(self, partition: TopicPartition, offset: int) -> list[int]:
        """Frees what lies before this offset of the source; the begins of entries that are not
        needed any more.
        """
        self.maps[partition].forget_before(offset)
        begins = self._begins[partition]
        count = max(0, bisect_right(begins, offset) - 1)
        found = begins[:count].tolist()
        del begins[:count]
        return found

    def close(self) -> None:
        self._consumer.close()
