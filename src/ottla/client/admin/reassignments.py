"""Which brokers hold the replicas of a partition (KIP-455): changing it, and what changes now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import not_
from typing import Any, Final, NamedTuple

from ottla.client.admin.partitions import by_topic
from ottla.client.client import Client
from ottla.client.errors import Needs, RefusedError
from ottla.client.patience import poll_until
from ottla.client.question import Question
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

ALTER_PARTITION_REASSIGNMENTS: Final = 45
LIST_PARTITION_REASSIGNMENTS: Final = 46
ANSWER_TIMEOUT_MS: Final = 25_000
LOOK_PAUSE_S: Final = 0.5
SETTLE_WITHIN_S: Final = 10.0

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
                what = f"{doing} {topic.name}-{each.partition_index}"
                raise RefusedError(what, each.error_code, each.error_message, Needs("Alter"))


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


Replicas = Mapping[str, Sequence[Sequence[int]]]
"""Each topic's replicas by partition."""


@dataclass(frozen=True, slots=True)
class Move:
    """A partition that gets other replicas."""

    topic: str
    partition: int
    from_: list[int]
    to: list[int]

    @property
    def added(self) -> set[int]:
        """The brokers that get a replica."""
        return set(self.to) - set(self.from_)


def current_assignments(
    client: Client, under_way: Mapping[TopicPartition, Reassignment]
) -> dict[str, list[list[int]]]:
    """Each topic's replicas by partition, without those that are being removed."""
    found: dict[str, list[list[int]]] = {}
    for name, topic in sorted(client.metadata().topics.items()):
        rows = []
        for number, partition in sorted(topic.partitions.items()):
            moving = under_way.get(TopicPartition(name, number))
            leaving = moving.removing if moving is not None else ()
            rows.append([each for each in partition.replicas if each not in leaving])
        found[name] = rows
    return found


def moves_between(assignments: Replicas, targets: Assignments) -> list[Move]:
    """Each partition that gets other replicas."""
    return [
        Move(topic, index, list(assignments[topic][index]), list(replicas))
        for topic, partitions in sorted(targets.items())
        for index, replicas in sorted(partitions.items())
        if list(replicas) != list(assignments[topic][index])
    ]


def await_moves(
    client: Client,
    partitions: Collection[TopicPartition],
    *,
    within_s: float,
    progress: Callable[[int], None],
) -> set[TopicPartition]:
    """Waits until no reassignment of these partitions is under way; returns those that still move
    when the time is over. `progress` gets the number of those that are done.
    """
    wanted = set(partitions)

    def look() -> set[TopicPartition]:
        left = wanted & reassignments(client).keys()
        progress(len(wanted) - len(left))
        return left

    return poll_until(look, not_, within_s=within_s, pause_s=LOOK_PAUSE_S, patience=client.patience)


def await_replicas(
    client: Client, is_wrong: Callable[[TopicPartition, Sequence[int]], bool]
) -> dict[TopicPartition, list[int]]:
    """The partitions whose replicas are wrong, once there are none or SETTLE_WITHIN_S are over: the
    broker that responds learns of the end of a move shortly after the controller.
    """

    def look() -> dict[TopicPartition, list[int]]:
        return {
            TopicPartition(name, index): list(each.replicas)
            for name, topic in sorted(client.metadata().topics.items())
            for index, each in topic.partitions.items()
            if is_wrong(TopicPartition(name, index), each.replicas)
        }

    return poll_until(
        look, not_, within_s=SETTLE_WITHIN_S, pause_s=LOOK_PAUSE_S, patience=client.patience
    )
