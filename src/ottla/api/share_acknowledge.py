"""ShareAcknowledge (key 79, KIP-932): what a member of a share group says of records it has.

v1: the first. v2 (KIP-1222): locks are renewed. The request goes on with the member's share
session; epoch -1 ends it, and what the member still has is released.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.api.current_leader import node_endpoints
from ottla.api.share_acknowledgements import (
    NO_ID,
    Acknowledging,
    acknowledgements,
    is_renewal,
    leader_of,
    lock_ms,
    member_of,
)
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.share_session import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    Member,
    ShareSession,
    ShareSessions,
    TopicPartition,
)
from ottla.runtime.slices import Slices

KEY: Final = 79
ACCESS: Final = (
    Access(Operation.READ, Resource.GROUP),
    Access(Operation.READ, Resource.TOPIC),
)


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    sessions = context.broker.shared_partitions.sessions
    try:
        member = member_of(request, context)
        session = _session(sessions, member, request.share_session_epoch)
    except ApiError as refusal:
        return build.ShareAcknowledgeResponse(
            error_code=refusal.code, error_message=str(refusal), responses=(), node_endpoints=()
        )
    slices = Slices()
    said, refused = await acknowledgements(
        request, renews=is_renewal(request, context), context=context, slices=slices
    )
    acknowledging = Acknowledging(member, context)
    await acknowledging.begin(said, refused, slices)
    results = await acknowledging.results()
    if request.share_session_epoch == FINAL_EPOCH:
        sessions.end(session)
    topics = []
    leaders: set[int] = set()
    for topic in request.topics:
        partitions = []
        for each in topic.partitions:
            await slices.count()
            where = TopicPartition(topic.topic_id or NO_ID, each.partition_index)
            error = results.get(where)
            code = ErrorCode.none if error is None else error.code
            leader = leader_of(where, code, context)
            leaders.add(leader.leader_id)
            partitions.append(
                build.PartitionData(
                    partition_index=each.partition_index,
                    error_code=code,
                    error_message=None if error is None else str(error),
                    current_leader=leader,
                )
            )
        topics.append(
            build.ShareAcknowledgeTopicResponse(
                topic_id=topic.topic_id, partitions=tuple(partitions)
            )
        )
    return build.ShareAcknowledgeResponse(
        error_code=ErrorCode.none,
        acquisition_lock_timeout=lock_ms(member.group_id, context),
        responses=tuple(topics),
        node_endpoints=node_endpoints(leaders, context),
    )


def _session(sessions: ShareSessions, member: Member, epoch: int) -> ShareSession:
    """Raises ApiError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH."""
    if epoch == FIRST_EPOCH:
        raise ApiError(ErrorCode.invalid_share_session_epoch, "A session begins with a ShareFetch.")
    return sessions.get(member) if epoch == FINAL_EPOCH else sessions.go_on(member, epoch)
