"""Which brokers hold the replicas of a partition (KIP-455): changing it, and what changes now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.client.admin.partitions import by_topic
from ottla.client.client import Client
from ottla.client.errors import RefusedError
from ottla.client.question import Question
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

ALTER_PARTITION_REASSIGNMENTS: Final = 45
LIST_PARTITION_REASSIGNMENTS: Final = 46
ANSWER_TIMEOUT_MS: Final = 25_000

Assignments = Mapping[str, Mapping[int, Sequence[int]]]
"""The brokers of each partition, by topic; the first is the preferred leader."""


class Reassignment(NamedTuple):
    """A partition whose replicas are being moved."""

    replicas: tuple[int, ...]
    """Those that are being added or removed, too."""
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def reassign(client: Client, targets: Assignments) -> None:
    """Requests other replicas. Raises RefusedError for the first partition that is refused."""
    _alter(client, targets, "move")


def cancel_reassignments(client: Client, partitions: Iterable[tuple[str, int]]) -> None:
    """Gives up the replicas that are being added. A move that has ended meanwhile is no error.

    Raises RefusedError for the first partition that is refused.
    """
    topics = by_topic(partitions)
    targets = {topic: dict.fromkeys(indexes) for topic, indexes in topics.items()}
    _alter(client, targets, "cancel the move of")


def _alter(
    client: Client, targets: Mapping[str, Mapping[int, Sequence[int] | None]], doing: str
) -> None:
    """AlterPartitionReassignments; no replicas cancel a move."""

    def build(messages: Messages) -> Any:
        topics = tuple(
            messages.ReassignableTopic(
                name=name,
                partitions=tuple(
                    messages.ReassignablePartition(
                        partition_index=index,
                        replicas=None if replicas is None else tuple(replicas),
                    )
                    for index, replicas in partitions.items()
                ),
            )
            for name, partitions in targets.items()
        )
        return messages.AlterPartitionReassignmentsRequest(timeout=ANSWER_TIMEOUT_MS, topics=topics)

    question = Question(ALTER_PARTITION_REASSIGNMENTS, 0, build)
    response = client.ask_controller(question, f"{doing} partitions")
    for topic in response.responses:
        for each in topic.partitions:
            if each.error_code not in (ErrorCode.none, ErrorCode.no_reassignment_in_progress):
                place = f"{doing} {topic.name}-{each.partition_index}"
                raise RefusedError(place, each.error_code, each.error_message)


def reassignments(client: Client) -> dict[TopicPartition, Reassignment]:
    """What moves now."""

    def build(messages: Messages) -> Any:
        return messages.ListPartitionReassignmentsRequest(timeout=ANSWER_TIMEOUT_MS, topics=None)

    question = Question(LIST_PARTITION_REASSIGNMENTS, 0, build)
    response = client.ask_controller(question, "list the ongoing reassignments")
    return {
        TopicPartition(topic.name, each.partition_index): Reassignment(
            tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
        )
        for topic in response.topics
        for each in topic.partitions
    }
