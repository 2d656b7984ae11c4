"""The segments of a partition: Ottla's own request, which the partition's leader answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple

from ottla.client.admin.journeys import NotOttlaError
from ottla.client.client import Client
from ottla.client.errors import ClientError, ClosedError, Needs, NotKafkaError, RefusedError
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
    question = {"segments": 1, "topic": where.topic, "partition": where.partition}
    try:
        body = json.dumps(question).encode()
        answer = json.loads(client.ask_at_bytes(leader.address, SEGMENTS, body))
    except ClosedError:
        raise NotOttlaError(
            f"the broker at {leader.address} lists no segments: it is not an Ottla broker, or an"
            " older one."
        ) from None
    except (NotKafkaError, ValueError):
        raise NotOttlaError(f"the server at {leader.address} is not an Ottla broker.") from None
    if not isinstance(answer, dict) or "segments" not in answer:
        raise NotOttlaError(f"the server at {leader.address} is not an Ottla broker.")
    if "error" in answer:
        code, message = answer["error"]["code"], answer["error"]["message"]
        if code == "not_authorized":
            needs = Needs("Describe", where.topic)
            refused = ErrorCode.topic_authorization_failed
            raise RefusedError(f"list the segments of {where}", refused, message, needs)
        raise ClientError(f"cannot list the segments of {where}: {message}.")
    listed = [Segment(**each) for each in answer["listed"]]
    return Segments(answer["broker"], answer["count"], listed)
