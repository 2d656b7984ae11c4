"""Positions that the target has forgotten, from the offset map.

A group without members loses its offsets after offsets.retention.minutes (KIP-211; a week by
default), so a mirror that runs once a month has none. To begin again would double every record. The
map has no such limit, and is written in the transactions of the records: the end of its last run is
where the mirror was, up to markers. What it does not have is the epoch of the last record.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ottla.client.admin.offsets import end_offsets
from ottla.client.topic_partition import TopicPartition
from ottla.mirroring import events
from ottla.mirroring.clusters import Side, SideClient
from ottla.mirroring.events import Event, Tell
from ottla.mirroring.map_reader import MapReader
from ottla.mirroring.names import map_topic_of
from ottla.mirroring.position import Position
from ottla.mirroring.spec import MirrorSpec
from ottla.mirroring.stable_map import wait_until_stable
from ottla.mirroring.topic_plan import SourceTopic


class LostPositions:
    """For one thread, which owns the client. The map is read when a partition needs it."""

    def __init__(self, side: Side, target: SideClient, spec: MirrorSpec, tell: Tell) -> None:
        self._side = side
        self._target = target
        self._map_topic = map_topic_of(spec.name)
        self._tell = tell

    def found(
        self,
        partitions: Collection[TopicPartition],
        ids: Mapping[TopicPartition, str | None],
        mirrored: Mapping[str, SourceTopic],
    ) -> dict[TopicPartition, Position]:
        """Of these partitions at the target, which have no position in the topics of these ids.
        Raises ClientError and LibrdkafkaError.
        """
        with self._target.asked():
            ends = end_offsets(self._target, partitions)
        wanted = {
            TopicPartition(mirrored[each.topic].name, each.partition): each
            for each in partitions
            if ends[each] > 0
        }
        found = {
            wanted[source]: position
            for source, position in self._in_map(wanted).items()
            # Without an id nobody knows whether it is still the topic that was written to.
            if position.origin.target_id is not None
            and position.origin.target_id == ids[wanted[source]]
        }
        for topic in sorted({each.topic for each in found}):
            text = (
                f"The target has forgotten the positions for topic {topic} "
                "(offsets.retention.minutes). It goes on by the map of offsets."
            )
            self._tell(Event(events.RESTORED, text, {"topic": topic}))
        return found

    def _in_map(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Position]:
        """By partition of the source."""
        if not partitions:
            return {}
        end = wait_until_stable(self._target, self._map_topic)
        reader = MapReader(self._side, self._map_topic)
        try:
            reader.read_to(end)
            found = {each: reader.position(each) for each in partitions}
        finally:
            reader.close()
        return {each: position for each, position in found.items() if position is not None}
