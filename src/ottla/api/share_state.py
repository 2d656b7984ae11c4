"""What the five requests about the states of share partitions have in common (KIP-932).

Only brokers send them. A request without a group, topics or partitions gets an empty answer, as in
Kafka; the partitions are asked at the same time, since each may wait for replicas.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final
from uuid import UUID

from ottla.api.context import Context
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import SLICE, parts
from ottla.share.stored import ShareKey

NO_ID: Final = UUID(int=0)
PARTITIONS_AT_ONCE: Final = SLICE

Decide = Callable[[ShareKey, Any], Awaitable[dict[str, Any]]]
"""Takes a share partition and its part of the request, and returns the fields of the answer."""


def from_brokers(request: Any) -> bool:
    """Only brokers send it. Others are answered with CLUSTER_AUTHORIZATION_FAILED, as in Kafka:
    clients see these requests in ApiVersions."""
    return True


def check_epochs(leader_epoch: int, state_epoch: int = 0) -> None:
    """Raises ApiError (INVALID_REQUEST) as in ShareCoordinatorShard: -1, which means none between
    the parts of a broker, is no epoch in a request.
    """
    for epoch, name in ((leader_epoch, "leader"), (state_epoch, "state")):
        if epoch < 0:
            raise ApiError(
                ErrorCode.invalid_request, f"The {name} epoch cannot be a negative number."
            )


async def answers(request: Any, context: Context, decide: Decide, topic_struct: str) -> Any:
    """The results of the request, by topic. `topic_struct` names the struct of a topic's."""
    build = context.messages
    if not request.group_id or not all(topic.partitions for topic in request.topics):
        return ()
    results = []
    for topic in request.topics:
        found: list[Any] = []
        for some in parts(topic.partitions, PARTITIONS_AT_ONCE):
            keys = [
                ShareKey(request.group_id, topic.topic_id or NO_ID, each.partition) for each in some
            ]
            answered = await asyncio.gather(
                *(_answer(key, each, decide, build) for key, each in zip(keys, some, strict=True))
            )
            found += answered
        new_topic = getattr(build, topic_struct)
        results.append(new_topic(topic_id=topic.topic_id, partitions=tuple(found)))
    return tuple(results)


async def _answer(key: ShareKey, asked: Any, decide: Decide, build: Any) -> Any:
    try:
        fields = await decide(key, asked)
    except ApiError as error:
        return build.PartitionResult(
            partition=key.partition, error_code=error.code, error_message=str(error)
        )
    return build.PartitionResult(partition=key.partition, **fields)
