"""Electing leaders: ElectLeaders (KIP-460).

librdkafka has a call for it, but that of confluent-kafka 2.16 raises SystemError.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ottla.client.admin.partitions import by_topic
from ottla.client.client import Client
from ottla.client.errors import Refusal
from ottla.client.question import Question
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

ELECT_LEADERS: Final = 43
ANSWER_TIMEOUT_MS: Final = 25_000


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
