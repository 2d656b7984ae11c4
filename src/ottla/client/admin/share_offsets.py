"""Where share groups stand (KIP-932): Describe-, Alter- and DeleteShareGroupOffsets.

A share group commits nothing. Its start offset is that of the first record that is not done with;
records after it may be, so the broker says the lag (KIP-1226).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ottla.client.admin.committed_offsets import Commit
from ottla.client.admin.partitions import by_topic
from ottla.client.client import Client
from ottla.client.coordinators import Coordinated
from ottla.client.errors import Needs, RefusedError
from ottla.client.question import Question
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages
from ottla.protocol.versions import DESCRIBE_SHARE_GROUP_OFFSETS

ALTER: Final = 91
DELETE: Final = 92
NOTHING: Final = -1


class ShareOffset(NamedTuple):
    """None: not known, or nothing was read yet."""

    start_offset: int | None
    lag: int | None
    leader_epoch: int


def share_offsets(client: Client, group: str) -> dict[TopicPartition, ShareOffset]:
    """All partitions that the group reads or has read. Raises RefusedError."""

    def build(messages: Messages) -> Any:
        asked = messages.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
        return messages.DescribeShareGroupOffsetsRequest(groups=(asked,))

    answer = _asked(client, group, Question(DESCRIBE_SHARE_GROUP_OFFSETS, 1, build), _only_group)
    doing = f"read the offsets of group {group!r}"
    _check(doing, answer, Needs("Describe", group))
    found = {}
    for topic in answer.topics:
        for each in topic.partitions:
            _check(doing, each, Needs("Describe", topic.topic_name))
            lag = getattr(each, "lag", NOTHING)
            found[TopicPartition(topic.topic_name, each.partition_index)] = ShareOffset(
                None if each.start_offset == NOTHING else each.start_offset,
                None if lag == NOTHING else lag,
                each.leader_epoch,
            )
    return found


def share_commits_of(client: Client, group: str) -> dict[TopicPartition, Commit]:
    """Start offsets like the commits of other groups. Raises RefusedError."""
    return {
        key: Commit(each.start_offset, "", each.leader_epoch)
        for key, each in share_offsets(client, group).items()
        if each.start_offset is not None
    }


def alter_share_offsets(
    client: Client, group: str, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, ErrorCode]:
    """Where the group begins to read; returns the errors. Raises RefusedError for all of them."""

    def build(messages: Messages) -> Any:
        topics = tuple(
            messages.AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=tuple(
                    messages.AlterShareGroupOffsetsRequestPartition(
                        partition_index=index, start_offset=offsets[TopicPartition(name, index)]
                    )
                    for index in indexes
                ),
            )
            for name, indexes in by_topic(offsets).items()
        )
        return messages.AlterShareGroupOffsetsRequest(group_id=group, topics=topics)

    answer = _asked(client, group, Question(ALTER, 0, build), _itself)
    _check(f"move group {group!r}", answer, Needs("Read", group))
    return {
        TopicPartition(topic.topic_name, each.partition_index): each.error_code
        for topic in answer.responses
        for each in topic.partitions
        if each.error_code is not ErrorCode.none
    }


def delete_share_offsets(client: Client, group: str, topics: Iterable[str]) -> dict[str, ErrorCode]:
    """The group forgets these topics; returns the errors. Raises RefusedError for all of them."""
    names = list(topics)

    def build(messages: Messages) -> Any:
        return messages.DeleteShareGroupOffsetsRequest(
            group_id=group,
            topics=tuple(
                messages.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names
            ),
        )

    answer = _asked(client, group, Question(DELETE, 0, build), _itself)
    _check(f"delete offsets of group {group!r}", answer, Needs("Delete", group))
    return {
        each.topic_name: each.error_code
        for each in answer.responses
        if each.error_code is not ErrorCode.none
    }


def _itself(response: Any) -> Any:
    return response


def _only_group(response: Any) -> Any:
    (group,) = response.groups
    return group


def _asked(client: Client, group: str, question: Question, answer_in: Any) -> Any:
    asked = client.ask_coordinators(
        Coordinated.GROUP,
        [group],
        lambda _: question,
        lambda response: [(group, answer_in(response))],
    )
    return asked[group][1]


def _check(doing: str, answer: Any, needs: Needs) -> None:
    if answer.error_code is not ErrorCode.none:
        raise RefusedError(doing, answer.error_code, answer.error_message, needs)
