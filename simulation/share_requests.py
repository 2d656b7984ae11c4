"""Requests of the members of a share group that reads one topic (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias
from uuid import UUID

from ottla.protocol.messages import messages_of

HEARTBEAT, FETCH, ACKNOWLEDGE = 76, 78, 79
ACCEPT: Final = 1
LEAVES: Final = -1
FINAL_EPOCH: Final = -1

Run: TypeAlias = tuple[int, int]
"""First and last offset."""


def heartbeat(group: str, topic: str, member: str, epoch: int) -> Any:
    build = messages_of(HEARTBEAT, 1, "request")
    return build.ShareGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rack_id=None,
        subscribed_topic_names=(topic,) if epoch == 0 else None,
    )


def share_fetch(
    group: str,
    member: str,
    topic_id: UUID | None,
    partition: int,
    epoch: int,
    accepts: Iterable[Run],
    max_records: int,
) -> Any:
    """In a session of one partition."""
    build = messages_of(FETCH, 2, "request")
    wanted = build.FetchPartition(
        partition_index=partition, acknowledgement_batches=_batches(build, accepts)
    )
    return build.ShareFetchRequest(
        group_id=group,
        member_id=member,
        share_session_epoch=epoch,
        max_wait=200,
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=max_records,
        batch_size=8,
        share_acquire_mode=0,
        is_renew_ack=False,
        topics=(build.FetchTopic(topic_id=topic_id, partitions=(wanted,)),),
        forgotten_topics_data=(),
    )


def session_end(
    group: str, member: str, topic_id: UUID | None, partition: int, accepts: Sequence[Run]
) -> Any:
    """Accepts these records, and ends the session."""
    build = messages_of(ACKNOWLEDGE, 2, "request")
    part = build.AcknowledgePartition(
        partition_index=partition, acknowledgement_batches=_batches(build, accepts)
    )
    topics = (build.AcknowledgeTopic(topic_id=topic_id, partitions=(part,)),)
    return build.ShareAcknowledgeRequest(
        group_id=group,
        member_id=member,
        share_session_epoch=FINAL_EPOCH,
        is_renew_ack=False,
        topics=topics if accepts else (),
    )


def _batches(build: Any, accepts: Iterable[Run]) -> tuple[Any, ...]:
    return tuple(
        build.AcknowledgementBatch(
            first_offset=first, last_offset=last, acknowledge_types=(ACCEPT,)
        )
        for first, last in accepts
    )


def parts_of(answer: Any) -> list[Any]:
    """What an answer says of each partition."""
    return [each for topic in answer.responses for each in topic.partitions]


def runs_of(acquired: Iterable[Any]) -> list[Run]:
    return [(each.first_offset, each.last_offset) for each in acquired]
