"""AlterPartition (key 56, between brokers): leaders propose ISRs (KIP-497).

v2: topic ids. v3: the broker epochs of the proposed replicas (KIP-903), so that a replica that
restarted in between does not count as in sync; Ottla's brokers use this version.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.broker_requests import REFUSED, is_from_broker
from ottla.api.context import Context
from ottla.controller.alter_partition import ProposedIsr
from ottla.protocol.access import BETWEEN_BROKERS
from ottla.protocol.errors import ApiError

KEY: Final = 56
ACCESS: Final = BETWEEN_BROKERS

_UNKNOWN_EPOCH: Final = -1


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    if not is_from_broker(context, request.broker_id):
        return build.AlterPartitionResponse(error_code=REFUSED)
    proposals = [
        ProposedIsr(
            topic_id=topic.topic_id,
            partition=each.partition_index,
            leader_epoch=each.leader_epoch,
            partition_epoch=each.partition_epoch,
            isr=_proposed(each, context.version),
        )
        for topic in request.topics
        for each in topic.partitions
    ]
    try:
        answers = await context.broker.controller.alter_partitions(
            request.broker_id, request.broker_epoch, proposals
        )
    except ApiError as error:
        return build.AlterPartitionResponse(error_code=error.code)
    topics: dict[Any, list[Any]] = {}
    for answer in answers:
        state = answer.state
        known = {} if state is None else _state(state)
        topics.setdefault(answer.topic_id, []).append(
            build.PartitionData(partition_index=answer.partition, error_code=answer.code, **known)
        )
    return build.AlterPartitionResponse(
        topics=tuple(
            build.TopicData(topic_id=topic_id, partitions=tuple(partitions))
            for topic_id, partitions in topics.items()
        )
    )


def _proposed(each: Any, version: int) -> tuple[tuple[int, int], ...]:
    if version < 3:
        return tuple((broker, _UNKNOWN_EPOCH) for broker in each.new_isr)
    return tuple((broker.broker_id, broker.broker_epoch) for broker in each.new_isr_with_epochs)


def _state(state: Any) -> dict[str, Any]:
    return {
        "leader_id": state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": state.isr,
        "partition_epoch": state.partition_epoch,
    }
