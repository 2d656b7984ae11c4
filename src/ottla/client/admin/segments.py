"""The segments of a partition: Ottla's own request, which the partition's leader answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ottla.client.admin.own_requests import ask_own, check_own
from ottla.client.client import Client
from ottla.client.errors import ClientError, Needs
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.versions import SEGMENTS


class Segment(NamedTuple):
    """As `ottla.log.segment_plan` has them."""

    base_offset: int
    next_offset: int
    size_bytes: int
    largest_ms: int | None
    removed_ms: int | None
    missing_bytes: int | None
    is_active: bool


@dataclass(frozen=True, slots=True)
class Segments:
    """Oldest first. `count`: how many there are; of very many the oldest are listed, and the active
    one.
    """

    broker: int
    count: int
    listed: list[Segment]


def segments_of(client: Client, where: TopicPartition) -> Segments:
    """On the partition's leader. Raises ClientError: NotOttlaError where it is not Ottla's."""
    metadata = client.metadata([where.topic])
    leader = metadata.brokers.get(metadata.leaders.get(where, -1))
    if leader is None:
        raise ClientError(f"cannot list the segments of {where}: it has no leader.")
    question = where._asdict()
    answer = ask_own(client, leader.address, SEGMENTS, "segments", "lists no segments", question)
    doing, needs = f"list the segments of {where}", Needs("Describe", where.topic)
    check_own(answer, doing, ErrorCode.topic_authorization_failed, needs)
    listed = [Segment(**each) for each in answer["listed"]]
    return Segments(answer["broker"], answer["count"], listed)
