"""What all groups have committed for one partition: ListGroups and OffsetFetch."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ottla.client.client import Client
from ottla.client.errors import RefusedError, RetriableError, UnsupportedError
from ottla.client.question import Question
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

OFFSET_FETCH: Final = 9
LIST_GROUPS: Final = 16
MANY: Final = 8
"""The first version of OffsetFetch about many groups (KIP-709; Apache Kafka 3.0)."""
MAX_GROUPS: Final = 500
"""Of one OffsetFetch."""
NOTHING: Final = -1
"""The offset of a group that has committed none."""


class Commit(NamedTuple):
    """A group's committed offset for the partition."""

    offset: int
    metadata: str
    leader_epoch: int


class Commits(NamedTuple):
    """By group. `unanswered`: the brokers whose groups are not known."""

    by_group: dict[str, Commit]
    unanswered: tuple[int, ...]


def committed_offsets(client: Client, place: TopicPartition) -> Commits:
    """The commits of all groups that any broker coordinates."""
    found: dict[str, Commit] = {}
    unanswered = []
    for number in sorted(client.metadata([]).brokers):
        try:
            groups = _groups_of(client, number)
            for first in range(0, len(groups), MAX_GROUPS):
                found |= _commits(client, number, groups[first : first + MAX_GROUPS], place)
        except (RetriableError, RefusedError):
            unanswered.append(number)
    return Commits(found, tuple(unanswered))


def _groups_of(client: Client, broker: int) -> list[str]:
    def build(messages: Messages) -> Any:
        return messages.ListGroupsRequest()

    response = client.ask_broker(broker, Question(LIST_GROUPS, 4, build))
    if response.error_code is not ErrorCode.none:
        raise RefusedError(f"list the groups of broker {broker}", response.error_code)
    return sorted(each.group_id for each in response.groups)


def _commits(
    client: Client, broker: int, groups: list[str], place: TopicPartition
) -> dict[str, Commit]:
    try:
        response = client.ask_broker(broker, _of_many(groups, place))
    except UnsupportedError:
        answers = [(each, client.ask_broker(broker, _of_one(each, place))) for each in groups]
    else:
        answers = [(each.group_id, each) for each in response.groups]
    found = {}
    for group, answer in answers:
        error = getattr(answer, "error_code", ErrorCode.none)  # not before version 2
        if error is not ErrorCode.none:
            raise RefusedError(f"read the offsets of group {group!r}", error)
        for topic in answer.topics:
            for each in topic.partitions:
                if each.error_code is not ErrorCode.none:
                    raise RefusedError(f"read the offsets of group {group!r}", each.error_code)
                if each.committed_offset != NOTHING:
                    epoch = getattr(each, "committed_leader_epoch", -1)
                    found[group] = Commit(each.committed_offset, each.metadata or "", epoch)
    return found


def _of_many(groups: list[str], place: TopicPartition) -> Question:
    def build(messages: Messages) -> Any:
        topic = messages.OffsetFetchRequestTopics(
            name=place.topic, partition_indexes=(place.partition,)
        )
        return messages.OffsetFetchRequest(
            groups=tuple(
                messages.OffsetFetchRequestGroup(group_id=each, topics=(topic,)) for each in groups
            )
        )

    return Question(OFFSET_FETCH, MANY, build, MANY)


def _of_one(group: str, place: TopicPartition) -> Question:
    def build(messages: Messages) -> Any:
        topic = messages.OffsetFetchRequestTopic(
            name=place.topic, partition_indexes=(place.partition,)
        )
        return messages.OffsetFetchRequest(group_id=group, topics=(topic,))

    return Question(OFFSET_FETCH, MANY - 1, build, 1)
