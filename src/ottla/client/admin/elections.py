"""Electing leaders: ElectLeaders (KIP-460).

A preferred election moves leadership back to the first replica, if that one is in sync. An unclean
one gives a partition without a leader one that is not in sync: what only the others have is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ottla.client.admin.partitions import by_topic
from ottla.client.client import Client
from ottla.client.errors import Refusal
from ottla.client.metadata import Partition
from ottla.client.patience import poll_until
from ottla.client.question import Question
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

ELECT_LEADERS: Final = 43
ANSWER_TIMEOUT_MS: Final = 25_000
SETTLE_WITHIN_S: Final = 5.0
LOOK_PAUSE_S: Final = 0.1


def elect_leaders(
    client: Client, partitions: Iterable[tuple[str, int]], *, unclean: bool
) -> dict[TopicPartition, Refusal]:
    """Preferred leaders, or `unclean` ones. Returns the partitions whose election
    failed.
    """
    topics = by_topic(partitions)

    def build(messages: Messages) -> Any:
        return messages.ElectLeadersRequest(
            election_type=int(unclean),
            topic_partitions=tuple(
                messages.TopicPartitions(topic=topic, partitions=tuple(indexes))
                for topic, indexes in topics.items()
            ),
            timeout=ANSWER_TIMEOUT_MS,
        )

    # Before version 1, the response has no error of its own.
    response = client.ask_controller(Question(ELECT_LEADERS, 2, build, 1), "elect leaders")
    return {
        TopicPartition(found.topic, each.partition_id): Refusal(each.error_code, each.error_message)
        for found in response.replica_election_results
        for each in found.partition_result
        # Not needed: the partition got its leader in the meantime.
        if each.error_code not in (ErrorCode.none, ErrorCode.election_not_needed)
    }


def preferred(state: Partition) -> int:
    """The first replica."""
    return int(state.replicas[0])


def leader_of(state: Partition) -> int | None:
    return state.leader if state.leader >= 0 else None


def to_elect(
    states: Mapping[TopicPartition, Partition], *, unclean: bool
) -> dict[TopicPartition, Partition]:
    """The partitions without a leader, or those that another than the preferred one leads."""
    if unclean:
        return {key: state for key, state in states.items() if leader_of(state) is None}
    return {key: state for key, state in states.items() if leader_of(state) != preferred(state)}


def settled_leaders(
    client: Client, wanted: Mapping[TopicPartition, Partition], why: Mapping[TopicPartition, str]
) -> dict[TopicPartition, int | None]:
    """The leaders once the broker that responds knows the new ones, which takes a moment."""

    def look() -> dict[TopicPartition, int | None]:
        leaders = client.metadata().leaders
        # A topic may have been deleted in the meantime.
        return {key: leaders[key] if leaders.get(key, -1) >= 0 else None for key in wanted}

    def is_changed(now: Mapping[TopicPartition, int | None]) -> bool:
        return all(now[key] != leader_of(state) for key, state in wanted.items() if key not in why)

    return poll_until(
        look,
        is_changed,
        within_s=SETTLE_WITHIN_S,
        pause_s=LOOK_PAUSE_S,
        patience=client.patience,
    )
