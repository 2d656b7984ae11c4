"""The topology of a streams group as a heartbeat brings it (KIP-1071)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ottla.controller.naming import is_topic_name
from ottla.groups.streams.large import MAX_TOPOLOGY_NAMES
from ottla.groups.streams.topology import (
    CopartitionGroup,
    Subtopology,
    TopicInfo,
    Topology,
    invalid,
)
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import INTERNAL_TOPICS
from ottla.runtime.slices import Slices, parts
from ottla.shards.encoding import fits_string


def subtopology_topics(subtopology: Any) -> list[str]:
    """All topics that a subtopology of a request or a response names."""
    return [
        *subtopology.source_topics,
        *subtopology.repartition_sink_topics,
        *(topic.name for topic in subtopology.repartition_source_topics),
        *(topic.name for topic in subtopology.state_changelog_topics),
    ]


async def checked_names(topology: Any, slices: Slices) -> tuple[str, ...]:
    """The topics that the topology of a request names, each once. Raises ApiError
    (STREAMS_INVALID_TOPOLOGY) for one that names too much, or what it must not (KafkaApis).
    """
    names: dict[str, None] = {}
    weight = 0
    for each in topology.subtopologies:
        own_weight = _weight(each, MAX_TOPOLOGY_NAMES - weight)
        weight += own_weight
        if weight > MAX_TOPOLOGY_NAMES:
            raise invalid(
                f"The topology names more than {MAX_TOPOLOGY_NAMES:,} subtopologies, topics and"
                " settings of topics. Divide the application."
            )
        await slices.count(own_weight)
        names.update(dict.fromkeys(subtopology_topics(each)))
    await _check_names(names, slices)
    return tuple(names)


def _weight(each: Any, most: int) -> int:
    """How much a subtopology names. One with more than `most` is not looked into."""
    infos = (*each.state_changelog_topics, *each.repartition_source_topics)
    count = 1 + len(infos) + len(each.copartition_groups) + len(each.source_topic_regex)
    count += len(each.source_topics) + len(each.repartition_sink_topics)
    if count <= most:
        count += sum(len(info.topic_configs or ()) for info in infos)
        count += sum(
            len(group.source_topics)
            + len(group.source_topic_regex)
            + len(group.repartition_source_topics)
            for group in each.copartition_groups
        )
    return count


async def _check_names(names: Collection[str], slices: Slices) -> None:
    prohibited = [name for name in names if name in INTERNAL_TOPICS]
    if prohibited:
        raise invalid(
            f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is"
            " prohibited."
        )
    impossible: list[str] = []
    for some in parts(names):
        await slices.count(len(some))
        impossible += [name for name in some if not is_topic_name(name)]
    if impossible:
        raise invalid(f"Topic names {','.join(impossible)} are not valid topic names.")


async def topology_of(topology: Any, slices: Slices) -> Topology | None:
    """Raises ApiError (STREAMS_INVALID_TOPOLOGY, INVALID_REQUEST) as `checked_names`."""
    if topology is None:
        return None
    await checked_names(topology, slices)
    subtopologies = []
    for each in topology.subtopologies:
        await slices.count(_weight(each, MAX_TOPOLOGY_NAMES))
        subtopologies.append(_subtopology(each))
    return Topology(topology.epoch, tuple(sorted(subtopologies)))


def _subtopology(each: Any) -> Subtopology:
    if not fits_string(each.subtopology_id):
        raise ApiError(ErrorCode.invalid_request, "A name is longer than 32,767 bytes.")
    return Subtopology(
        each.subtopology_id,
        tuple(each.source_topics),
        tuple(each.source_topic_regex),
        tuple(map(_info, each.state_changelog_topics)),
        tuple(each.repartition_sink_topics),
        tuple(map(_info, each.repartition_source_topics)),
        tuple(
            CopartitionGroup(
                tuple(group.source_topics),
                tuple(group.source_topic_regex),
                tuple(group.repartition_source_topics),
            )
            for group in each.copartition_groups
        ),
    )


def _info(topic: Any) -> TopicInfo:
    configs = tuple((config.key, config.value) for config in topic.topic_configs or ())
    return TopicInfo(topic.name, topic.partitions, topic.replication_factor, configs)
