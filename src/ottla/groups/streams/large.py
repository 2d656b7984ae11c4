"""Which streams groups are so large that a thread decides (`ottla.groups.aside`)."""

from __future__ import annotations

from typing import Final

from ottla.groups.consumer.topics import Topics
from ottla.groups.streams.endpoints import count_topics
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import JOIN_EPOCH
from ottla.groups.streams.requests import HeartbeatRequest
from ottla.groups.streams.topology import Topology

MAX_AT_ONCE: Final = 1_500
"""Members, tasks with their copies, what the topology names, what the members' tasks read, and what
the request says: decided and written in 25 ms, with two copies of each task.
"""
MAX_TOPOLOGY_NAMES: Final = 10_000
"""Subtopologies, topics, settings and copartition groups that a topology may name; it is one record
in the log. Kafka has no limit but that of the record.
"""


def topology_weight(topology: Topology) -> int:
    """How much it names."""
    count = 0
    for subtopology in topology.subtopologies:
        infos = (*subtopology.changelog_topics, *subtopology.repartition_source_topics)
        count += 1 + len(subtopology.source_topics) + len(subtopology.repartition_sink_topics)
        count += sum(1 + len(info.configs) for info in infos)
        count += sum(1 + sum(map(len, group)) for group in subtopology.copartition_groups)
    return count


def is_large(group: StreamsGroup, request: HeartbeatRequest, topics: Topics) -> bool:
    """Whether this heartbeat may take longer than the event loop should be held."""
    compared, member = group.soft.compared, group.members.get(request.member_id)
    if (
        request.epoch != JOIN_EPOCH
        and compared is not None
        and compared.topics_version == topics.version
        and member is not None
        and group.epoch == group.target_epoch
        and member.is_reconciled_to(group.target_epoch)
        and request.endpoint_epoch == group.soft.endpoint_epoch
    ):
        return False
    topology = request.topology or group.topology
    weight = held_weight(group) + request.owned_count
    if topology is not None:
        weight += topology_weight(topology)
        for subtopology in topology.subtopologies:
            found = (topics.by_name.get(name) for name in subtopology.read_topics())
            counts = [topic.partition_count for topic in found if topic is not None]
            counts += [topic.partitions for topic in subtopology.repartition_source_topics]
            weight += max(counts, default=0)
            if weight > MAX_AT_ONCE:
                return True
        reads = {each.id: sum(1 for _ in each.read_topics()) for each in topology.subtopologies}
        weight += count_topics(group.members.values(), reads)
    return weight > MAX_AT_ONCE


def held_weight(group: StreamsGroup) -> int:
    """Members, their tasks and what they say of these."""
    said = sum(len(each.offsets) for each in group.soft.task_offsets.values())
    return said + sum(1 + member.assigned.size for member in group.members.values())


def is_first_assignment_large(group: StreamsGroup) -> bool:
    """Whether the first targets may take longer than that."""
    compared = group.soft.compared
    tasks = 0 if compared is None else compared.configured.task_count()
    return held_weight(group) + tasks > MAX_AT_ONCE
