"""What groups have committed: OffsetFetch, OffsetCommit, OffsetDelete (KIP-496), ListGroups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.client.admin.partitions import by_topic, in_chunks
from ottla.client.client import Client
from ottla.client.coordinators import MOVING, Coordinated
from ottla.client.errors import Needs, RefusedError, RetriableError, UnsupportedError
from ottla.client.question import Question
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
LIST_GROUPS: Final = 16
OFFSET_DELETE: Final = 47
MANY: Final = 8
"""The first version of OffsetFetch about many groups (KIP-709; Apache Kafka 3.0)."""
BY_NAME: Final = 9
"""Later versions of OffsetCommit name topics by id, which is not needed here."""
MAX_GROUPS: Final = 500
"""Of one OffsetFetch."""
NOTHING: Final = -1
"""The offset of a group that has committed none."""


class Commit(NamedTuple):
    """A group's committed offset for a partition."""

    offset: int
    metadata: str
    leader_epoch: int


class AllCommits(NamedTuple):
    """What all groups have committed. `unanswered`: the brokers whose groups are not known;
    `refused`: the groups whose offsets this client may not see.
    """

    by_group: dict[str, dict[TopicPartition, Commit]]
    unanswered: tuple[int, ...]
    refused: tuple[str, ...]


class Commits(NamedTuple):
    """By group. `unanswered`: the brokers whose groups are not known."""

    by_group: dict[str, Commit]
    unanswered: tuple[int, ...]


def committed_offsets(client: Client, partition: TopicPartition) -> Commits:
    """The commits of all groups that any broker coordinates, for one partition."""
    found: dict[str, Commit] = {}
    unanswered = []
    for number in sorted(client.metadata([]).brokers):
        try:
            for groups in in_chunks(_groups_of(client, number), MAX_GROUPS):
                for group, commits in _commits(client, number, groups, partition).items():
                    if partition in commits:
                        found[group] = commits[partition]
        except (RetriableError, RefusedError):
            unanswered.append(number)
    return Commits(found, tuple(unanswered))


def all_commits(client: Client) -> AllCommits:
    """The commits of all groups that any broker coordinates, for all partitions."""
    found: dict[str, dict[TopicPartition, Commit]] = {}
    unanswered, refused = [], []
    for number in sorted(client.metadata([]).brokers):
        try:
            for groups in in_chunks(_groups_of(client, number), MAX_GROUPS):
                for group, answer in _answers(client, number, groups, None):
                    try:
                        found[group] = _read(group, answer)
                    except RefusedError:
                        refused.append(group)
        except (RetriableError, RefusedError):
            unanswered.append(number)
    return AllCommits(found, tuple(unanswered), tuple(refused))


def commits_of(client: Client, group: str) -> dict[TopicPartition, Commit]:
    """What a group has committed. Raises RefusedError."""
    asked = client.ask_coordinators(
        Coordinated.GROUP,
        [group],
        lambda _: _of_one(group, None),
        lambda response: [(group, response)],
    )
    return _read(group, asked[group][1])


def _groups_of(client: Client, broker: int) -> list[str]:
    def build(messages: Messages) -> Any:
        return messages.ListGroupsRequest()

    response = client.ask_broker(broker, Question(LIST_GROUPS, 4, build))
    if response.error_code is not ErrorCode.none:
        raise RefusedError(
            f"list the groups of broker {broker}", response.error_code, None, Needs("Describe")
        )
    return sorted(each.group_id for each in response.groups)


def _commits(
    client: Client, broker: int, groups: Sequence[str], partition: TopicPartition
) -> dict[str, dict[TopicPartition, Commit]]:
    answers = _answers(client, broker, groups, partition)
    return {group: _read(group, answer) for group, answer in answers}


def _answers(
    client: Client, broker: int, groups: Sequence[str], partition: TopicPartition | None
) -> list[tuple[str, Any]]:
    """By group. None: about all partitions."""
    try:
        response = client.ask_broker(broker, _of_many(groups, partition))
    except UnsupportedError:
        return [(each, client.ask_broker(broker, _of_one(each, partition))) for each in groups]
    return [(each.group_id, each) for each in response.groups]


def _read(group: str, answer: Any) -> dict[TopicPartition, Commit]:
    """An answer about one group. Raises RefusedError."""
    doing = f"read the offsets of group {group!r}"
    error = getattr(answer, "error_code", ErrorCode.none)  # not before version 2
    if error is not ErrorCode.none:
        raise RefusedError(doing, error, None, Needs("Describe", group))
    found = {}
    for topic in answer.topics:
        for each in topic.partitions:
            if each.error_code is not ErrorCode.none:
                raise RefusedError(doing, each.error_code, None, Needs("Describe", topic.name))
            if each.committed_offset != NOTHING:
                found[TopicPartition(topic.name, each.partition_index)] = Commit(
                    each.committed_offset,
                    each.metadata or "",
                    getattr(each, "committed_leader_epoch", -1),
                )
    return found


def _of_many(groups: Sequence[str], partition: TopicPartition | None) -> Question:
    """None: all of their partitions."""

    def build(messages: Messages) -> Any:
        topics = None
        if partition is not None:
            topics = (
                messages.OffsetFetchRequestTopics(
                    name=partition.topic, partition_indexes=(partition.partition,)
                ),
            )
        return messages.OffsetFetchRequest(
            groups=tuple(
                messages.OffsetFetchRequestGroup(group_id=each, topics=topics) for each in groups
            )
        )

    return Question(OFFSET_FETCH, MANY, build, MANY)


def _of_one(group: str, partition: TopicPartition | None) -> Question:
    """None: all of its partitions."""

    def build(messages: Messages) -> Any:
        topics = None
        if partition is not None:
            topics = (
                messages.OffsetFetchRequestTopic(
                    name=partition.topic, partition_indexes=(partition.partition,)
                ),
            )
        return messages.OffsetFetchRequest(group_id=group, topics=topics)

    # Before version 2 there is no question about all.
    return Question(OFFSET_FETCH, MANY - 1, build, 1 if partition is not None else 2)


def commit_offsets(
    client: Client,
    group: str,
    offsets: Mapping[TopicPartition, int],
    metadata: Mapping[TopicPartition, str] | None = None,
) -> dict[TopicPartition, ErrorCode]:
    """Commits for a group without active members, as Admin.alterConsumerGroupOffsets does. Returns
    the partitions that were refused.
    """
    texts = metadata or {}

    def build(messages: Messages) -> Any:
        return messages.OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=-1,
            member_id="",
            retention_time=-1,
            topics=tuple(
                messages.OffsetCommitRequestTopic(
                    name=topic,
                    partitions=tuple(
                        messages.OffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offsets[TopicPartition(topic, index)],
                            committed_leader_epoch=-1,
                            committed_metadata=texts.get(TopicPartition(topic, index), ""),
                        )
                        for index in indexes
                    ),
                )
                for topic, indexes in by_topic(offsets).items()
            ),
        )

    asked = client.ask_coordinators(
        Coordinated.GROUP,
        [group],
        lambda _: Question(OFFSET_COMMIT, BY_NAME, build, 2),
        lambda response: [(group, response)],
        lambda response: next(
            (code for code in _codes(response).values() if code in MOVING), ErrorCode.none
        ),
    )
    return _codes(asked[group][1])


def delete_offsets(
    client: Client, group: str, partitions: Iterable[tuple[str, int]]
) -> dict[TopicPartition, ErrorCode]:
    """Deletes what a group has committed. Returns the partitions whose offset is kept, with the
    reason; a group whose members are subscribed to the topic keeps it.

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
    return _codes(client.ask_coordinator(Coordinated.GROUP, group, question, doing))


def _codes(response: Any) -> dict[TopicPartition, ErrorCode]:
    """The partitions with an error."""
    return {
        TopicPartition(topic.name, each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
        if each.error_code is not ErrorCode.none
    }
