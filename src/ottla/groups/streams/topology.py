"""The topology of a Kafka Streams application, as its members send it and as the group keeps it.

A subtopology reads source topics and repartition topics, writes to repartition topics, and keeps
its state in changelog topics; the latter two are internal: the broker creates them. Kafka's
StreamsTopology.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ottla.protocol.errors import ApiError, ErrorCode


class TopicInfo(NamedTuple):
    """An internal topic."""

    name: str
    partitions: int
    """0: as many as the application's other topics demand; always 0 of changelogs."""
    replication_factor: int
    """0: the broker's default."""
    configs: tuple[tuple[str, str], ...]


class CopartitionGroup(NamedTuple):
    """Topics that must have equally many partitions: positions in the lists of the subtopology."""

    source_topics: tuple[int, ...]
    source_topic_regexes: tuple[int, ...]
    repartition_source_topics: tuple[int, ...]


class Subtopology(NamedTuple):
    """A part of the topology that is connected by topics only."""

    id: str
    source_topics: tuple[str, ...]
    source_topic_regexes: tuple[str, ...]
    """Kafka 4.4 knows none yet."""
    changelog_topics: tuple[TopicInfo, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: tuple[TopicInfo, ...]
    copartition_groups: tuple[CopartitionGroup, ...]

    def read_topics(self) -> Iterator[str]:
        """Source topics and repartition topics."""
        yield from self.source_topics
        for topic in self.repartition_source_topics:
            yield topic.name

    def topics(self) -> Iterator[str]:
        """All that it reads or writes as its own."""
        yield from self.read_topics()
        yield from self.repartition_sink_topics
        for topic in self.changelog_topics:
            yield topic.name


class Topology(NamedTuple):
    """Subtopologies, sorted by their ids."""

    epoch: int
    subtopologies: tuple[Subtopology, ...]

    def required_topics(self) -> set[str]:
        """Those that must exist before there are tasks."""
        names: set[str] = set()
        for subtopology in self.subtopologies:
            names.update(subtopology.read_topics())
            names.update(topic.name for topic in subtopology.changelog_topics)
        return names

    def readers(self) -> Mapping[str, str]:
        """The subtopology that reads each topic."""
        return {
            topic: subtopology.id
            for subtopology in self.subtopologies
            for topic in subtopology.read_topics()
        }


def check_topology(topology: Topology) -> None:
    """Raises ApiError (STREAMS_INVALID_TOPOLOGY) for one that cannot be.

    For all but changelogs Kafka answers UNKNOWN_SERVER_ERROR, without a reason.
    """
    for subtopology in topology.subtopologies:
        for topic in subtopology.changelog_topics:
            if topic.partitions:
                raise invalid(
                    f"Changelog topic {topic.name} must have an undefined partition count, but it"
                    f" is set to {topic.partitions}."
                )
        for topic in subtopology.repartition_source_topics:
            if topic.partitions < 0:
                raise invalid(
                    f"Repartition topic {topic.name} has {topic.partitions} partitions; give at"
                    " least 1, or 0 for as many as its sources have."
                )
        _check_positions(subtopology)
    ids = [subtopology.id for subtopology in topology.subtopologies]
    if len(set(ids)) < len(ids):
        raise invalid("Two subtopologies have the same id.")
    if topology.epoch < 0:
        raise invalid(f"Topology epoch is {topology.epoch}, but must be at least 0.")


def _check_positions(subtopology: Subtopology) -> None:
    sources = len(subtopology.source_topics)
    repartitions = len(subtopology.repartition_source_topics)
    for group in subtopology.copartition_groups:
        for count, positions in (
            (sources, group.source_topics),
            (repartitions, group.repartition_source_topics),
        ):
            if any(not 0 <= position < count for position in positions):
                raise invalid(
                    f"A copartition group of subtopology {subtopology.id} names a topic that the"
                    " subtopology does not have."
                )


def invalid(message: str) -> ApiError:
    """The topology is refused."""
    return ApiError(ErrorCode.streams_invalid_topology, message)
