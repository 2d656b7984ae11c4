"""Removes from the offset map what the source has removed, so that it stays as large as that.

No group's offset means anything before the first offset of the source's log. An entry of the map is
deleted (a record without a value, which compaction removes with the entry) once the next entry
begins before that offset. A mirror that is killed meanwhile has deleted some of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaException, Producer

from ottla.client.admin.offsets import first_offsets
from ottla.client.topic_partition import TopicPartition
from ottla.messaging.librdkafka import LibrdkafkaError, explain, quiet, rejected
from ottla.mirroring.clusters import Side, SideClient
from ottla.mirroring.map_reader import MapReader
from ottla.mirroring.offset_map_records import entry_key
from ottla.mirroring.topic_plan import SourceTopic

WITHIN_S: Final = 30.0
FULL_PAUSE_S: Final = 0.1


class MapTidying:
    """For the thread of the reader. Connects when there is something to delete."""

    def __init__(self, source: SideClient, target: Side, topic: str, reader: MapReader) -> None:
        self._source = source
        self._target = target
        self._topic = topic
        self._reader = reader
        self._producer: Any = None
        self._reason: str | None = None

    def tidy(self, mirrored: Mapping[str, SourceTopic]) -> int:
        """Deletes what is not needed any more, and returns how many entries that were. Raises
        ClientError and LibrdkafkaError.
        """
        known = {topic.name: topic.partitions for topic in mirrored.values()}
        partitions = [
            each
            for each in self._reader.maps
            if each.partition < known.get(each.topic, 0) and self._reader.may_be_tidied(each)
        ]
        count, self._reason = 0, None
        with self._source.asked():
            firsts = first_offsets(self._source, partitions)
        for each, first in firsts.items():
            for begin in self._reader.forget_before(each, first):
                self._delete(each, begin)
                count += 1
        if count and (self._producer.flush(WITHIN_S) or self._reason):
            reason = self._reason or "no response in time."
            raise LibrdkafkaError(f"cannot tidy the offset map at the target: {reason}")
        return count

    def _delete(self, partition: TopicPartition, begin: int) -> None:
        if self._producer is None:
            try:
                self._producer = Producer(quiet(self._target.settings))
            except KafkaException as error:
                raise rejected(error, "tidy the offset map") from error
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    None,
                    entry_key(partition, begin),
                    partition=0,
                    on_delivery=self._delivered,
                )
            except BufferError:
                # Bounded: each queued record is delivered or times out.
                self._producer.poll(FULL_PAUSE_S)
            else:
                return

    def _delivered(self, error: Any, _record: Any) -> None:
        if error is not None:
            self._reason = explain(error)
