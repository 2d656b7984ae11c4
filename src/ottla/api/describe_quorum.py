"""DescribeQuorum (key 55): the voters on the cluster's metadata (KIP-595).

v1 (KIP-836): times of the replicas. v2 (KIP-853): the nodes. Only the controller writes the
coordination tree, so the response shows it as the leader and only voter of `__cluster_metadata`,
with its epoch and the number of changes so far.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.protocol.internal_topics import METADATA_TOPIC

KEY: Final = 55
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.CLUSTER),)


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    image = context.broker.image
    topics = tuple(
        build.TopicData(
            topic_name=topic.topic_name,
            partitions=tuple(
                _partition(topic.topic_name, each.partition_index, context)
                for each in topic.partitions
            ),
        )
        for topic in request.topics
    )
    controller = image.brokers.get(image.controller_id)
    listeners = () if controller is None else controller.endpoints
    node = build.Node(
        node_id=image.controller_id,
        listeners=tuple(
            build.Listener(name=each.name, host=each.host, port=each.port) for each in listeners
        ),
    )
    return build.DescribeQuorumResponse(topics=topics, nodes=(node,))


def _partition(topic: str, index: int, context: Context) -> Any:
    build = context.messages
    if (topic, index) != (METADATA_TOPIC, 0):
        return build.PartitionData(
            partition_index=index, error_code=ErrorCode.unknown_topic_or_partition
        )
    image, now_ms = context.broker.image, context.broker.clock.now_ms()
    voter = build.ReplicaState(
        replica_id=image.controller_id,
        log_end_offset=image.version,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return build.PartitionData(
        partition_index=index,
        leader_id=image.controller_id,
        leader_epoch=image.controller_epoch,
        high_watermark=image.version,
        current_voters=(voter,),
    )
