"""The topology of a streams group as a heartbeat brings it (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.controller.naming import check_topic_name
from ottla.groups.streams.large import MAX_TOPOLOGY_NAMES, topology_weight
from ottla.groups.streams.topology import (
    CopartitionGroup,
    Subtopology,
    TopicInfo,
    Topology,
    invalid,
)
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import INTERNAL_TOPICS
from ottla.runtime.slices import Slices
from ottla.shards.encoding import fits_string


def subtopology_topics(subtopology: Any) -> list[str]:
    """All topics that a subtopology of a request or a response names."""
    return [
        *subtopology.source_topics,
        *subtopology.repartition_sink_topics,
        *(topic.name for topic in subtopology.repartition_source_topics),
        *(topic.name for topic in subtopology.state_changelog_topics),
    ]


def forbidden_names(names: Iterable[str]) -> ApiError | None:
    """STREAMS_INVALID_TOPOLOGY for names that a topology must not have (KafkaApis)."""
    prohibited = [name for name in names if name in INTERNAL_TOPICS]
    if prohibited:
        return invalid(
            f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is"
            " prohibited."
        )
    impossible = [name for name in names if not _is_possible(name)]
    if impossible:
        return invalid(f"Topic names {','.join(impossible)} are not valid topic names.")
    return None


def _is_possible(name: str) -> bool:
    try:
        check_topic_name(name)
    except ApiError:
        return False
    return True


async def topology_of(topology: Any, slices: Slices) -> Topology | None:
    """Raises ApiError (STREAMS_INVALID_TOPOLOGY) also for one that names too much."""
    if topology is None:
        return None
    names: dict[str, None] = {}
    subtopologies: list[Subtopology] = []
    weight = 0
    for each in topology.subtopologies:
        names.update(dict.fromkeys(subtopology_topics(each)))
        made = _subtopology(each)
        own_weight = topology_weight(Topology(topology.epoch, (made,)))
        await slices.count(own_weight)
        weight += own_weight
        if weight > MAX_TOPOLOGY_NAMES:
            raise invalid(
                f"The topology names more than {MAX_TOPOLOGY_NAMES:,} subtopologies, topics and"
                " settings of topics. Divide the application."
            )
        subtopologies.append(made)
    refused = forbidden_names(names)
    if refused is not None:
        raise refused
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
