"""The current leader, sent with NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH, so that a
client does not request metadata first (KIP-951). Produce v10+, Fetch v12+ (leaders' addresses:
v16+)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from ottla.api.context import Context
from ottla.api.metadata import broker_addresses
from ottla.controller.image import ClusterImage, PartitionState
from ottla.protocol.errors import ApiError, ErrorCode

_ELSEWHERE: Final = (ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch)


def current_leader(topic: str | UUID | None, index: int, code: ErrorCode, context: Context) -> Any:
    """The message LeaderIdAndEpoch; None for another error or if no leader is known."""
    if code not in _ELSEWHERE:
        return None
    try:
        state = context.broker.partitions.find(topic, index).state
    except ApiError:
        # Other brokers hold the partition: the image has its leader (KafkaApis.getCurrentLeader).
        state = _known_state(topic, index, context.broker.image)
    if state is None or state.leader < 0:
        return None
    return context.messages.LeaderIdAndEpoch(
        leader_id=state.leader, leader_epoch=state.leader_epoch
    )


def _known_state(
    topic: str | UUID | None, index: int, image: ClusterImage
) -> PartitionState | None:
    if isinstance(topic, str):
        return image.partition(topic, index)
    known = None if topic is None else image.topic_by_id(topic)
    return None if known is None else image.partition(known.name, index)


def node_endpoints(leaders: Iterable[int], context: Context) -> tuple[Any, ...]:
    """The addresses of these brokers."""
    wanted = set(leaders)
    if not wanted:
        return ()
    return tuple(
        context.messages.NodeEndpoint(node_id=broker_id, host=host, port=port, rack=rack)
        for broker_id, host, port, rack in broker_addresses(context)
        if broker_id in wanted
    )
