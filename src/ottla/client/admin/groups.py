"""Consumer groups, as far as librdkafka has no call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ottla.client.admin.partitions import by_topic
from ottla.client.client import Client
from ottla.client.coordinators import Coordinated
from ottla.client.errors import reason_of
from ottla.client.question import Question
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

OFFSET_DELETE: Final = 47


def why_no_coordinator(client: Client, group: str) -> str | None:
    """The broker's reason as a part of a sentence; None if the group has a coordinator."""
    (found,) = client.find_coordinators(Coordinated.GROUP, [group])
    if found.error is ErrorCode.none:
        return None
    return reason_of(found.error, found.message)


def delete_offsets(
    client: Client, group: str, partitions: Iterable[tuple[str, int]]
) -> dict[TopicPartition, ErrorCode]:
    """Deletes what a group has committed (OffsetDelete, KIP-496). Returns the partitions whose
    offset is kept, with the reason; a group whose members are subscribed to the topic keeps it.

    Raises RefusedError.
    """
    topics = by_topic(partitions)

    def build(messages: Messages) -> Any:
        return messages.OffsetDeleteRequest(
            group_id=group,
            topics=tuple(
                messages.OffsetDeleteRequestTopic(
                    name=name,
                    partitions=tuple(
                        messages.OffsetDeleteRequestPartition(partition_index=index)
                        for index in indexes
                    ),
                )
                for name, indexes in topics.items()
            ),
        )

    question, doing = Question(OFFSET_DELETE, 0, build), f"delete offsets of group {group!r}"
    response = client.ask_coordinator(Coordinated.GROUP, group, question, doing)
    return {
        TopicPartition(topic.name, each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
        if each.error_code is not ErrorCode.none
    }
