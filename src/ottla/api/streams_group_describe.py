"""StreamsGroupDescribe (key 89, KIP-1071): state, topology and members of streams groups."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from ottla.api.context import Context
from ottla.api.described_groups import described_groups
from ottla.api.group_assignments import task_ids
from ottla.api.streams_group_heartbeat import is_enabled
from ottla.groups.streams.describe import (
    DescribedMember,
    DescribedStreamsGroup,
    DescribedTopology,
)
from ottla.groups.streams.description import Node, decode
from ottla.groups.streams.offsets import TaskOffsets
from ottla.groups.streams.tasks import HeldTasks, Tasks
from ottla.groups.streams.topology import TopicInfo
from ottla.protocol.access import Access, Operation, Resource
from ottla.runtime.slices import Slices, parts

KEY: Final = 89
ACCESS: Final = (
    Access(Operation.DESCRIBE, Resource.GROUP),
    Access(Operation.DESCRIBE, Resource.TOPIC),
)

NOT_STORED: Final = 1
"""TopologyDescriptionStatus."""
DESCRIPTION_NOT_TOLD: Final = 2
"""ERROR in the protocol."""
AVAILABLE: Final = 3


async def handle(request: Any, context: Context) -> Any:
    """Each group; see `described_groups`."""
    build = context.messages
    groups = await described_groups(
        request,
        context,
        context.broker.groups.streams.describe,
        partial(_member, build),
        partial(_of_topology, request, build),
        is_enabled=is_enabled(context),
    )
    return build.StreamsGroupDescribeResponse(groups=groups)


async def _of_topology(
    request: Any, build: Any, group: DescribedStreamsGroup, slices: Slices
) -> dict[str, Any]:
    topology = await _topology(group.topology, build, slices)
    return {"topology": topology, **await _description(group.description, request, build, slices)}


async def _description(
    kept: bytes | None, request: Any, build: Any, slices: Slices
) -> dict[str, Any]:
    """Since version 1 (KIP-1331): of the topology, where the client asks for it."""
    if build.version < 1 or not request.include_topology_description:
        return {}
    if kept is None:
        return {"topology_description_status": NOT_STORED}
    description = decode(kept)
    subtopologies = []
    for each in description.subtopologies:
        await slices.count(1 + len(each.nodes))
        nodes = tuple(_node(node, build) for node in each.nodes)
        subtopologies.append(
            build.TopologyDescriptionSubtopology(subtopology_id=each.id, nodes=nodes)
        )
    stores = tuple(
        build.TopologyDescriptionGlobalStore(
            source=_node(store.source, build), processor=_node(store.processor, build)
        )
        for store in description.global_stores
    )
    return {
        "topology_description_status": AVAILABLE,
        "topology_description": build.TopologyDescription(
            subtopologies=tuple(subtopologies), global_stores=stores
        ),
    }


def _node(node: Node, build: Any) -> Any:
    return build.TopologyDescriptionNode(
        name=node.name,
        node_type=node.kind,
        source_topics=node.source_topics,
        sink_topic=node.sink_topic,
        stores=node.stores,
        successors=node.successors,
    )


async def _topology(topology: DescribedTopology | None, build: Any, slices: Slices) -> Any:
    if topology is None:
        return None
    made = []
    for each in topology.subtopologies:
        topics = (*each.changelog_topics, *each.repartition_source_topics)
        await slices.count(1 + len(topics) + len(each.source_topics))
        made.append(
            build.Subtopology(
                subtopology_id=each.id,
                source_topics=each.source_topics,
                repartition_sink_topics=each.repartition_sink_topics,
                state_changelog_topics=_infos(each.changelog_topics, build),
                repartition_source_topics=_infos(each.repartition_source_topics, build),
            )
        )
    return build.Topology(epoch=topology.epoch, subtopologies=tuple(made))


def _infos(topics: tuple[TopicInfo, ...], build: Any) -> Any:
    return tuple(
        build.TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=_pairs(topic.configs, build),
        )
        for topic in topics
    )


def _pairs(pairs: tuple[tuple[str, str], ...], build: Any) -> Any:
    return tuple(build.KeyValue(key=key, value=value) for key, value in pairs)


async def _member(build: Any, described: DescribedMember, slices: Slices) -> Any:
    member, target, offsets = described
    endpoint = member.endpoint
    return build.Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=(
            None if endpoint is None else build.Endpoint(host=endpoint.host, port=endpoint.port)
        ),
        client_tags=_pairs(member.client_tags, build),
        task_offsets=await _offsets(offsets.offsets, build, slices),
        task_end_offsets=await _offsets(offsets.end_offsets, build, slices),
        assignment=await _assignment(member.assigned, build, slices),
        target_assignment=await _assignment(target, build, slices),
        is_classic=False,
    )


async def _offsets(offsets: TaskOffsets, build: Any, slices: Slices) -> Any:
    """Sorted by task."""
    made: list[Any] = []
    for some in parts(sorted(offsets)):
        await slices.count(len(some))
        made += [
            build.TaskOffset(subtopology_id=name, partition=number, offset=offsets[name, number])
            for name, number in some
        ]
    return tuple(made)


async def _assignment(tasks: HeldTasks | Tasks, build: Any, slices: Slices) -> Any:
    return build.Assignment(
        active_tasks=await task_ids(tasks.active, build, slices),
        standby_tasks=await task_ids(tasks.standby, build, slices),
        warmup_tasks=await task_ids(tasks.warmup, build, slices),
    )
