"""Offsets of many partitions at once: the first, the end, and by time (ListOffsets)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from ottla.client.admin.partitions import by_leader, by_topic
from ottla.client.client import Client
from ottla.client.errors import ClientError, RetriableError, reason_of
from ottla.client.metadata import Metadata
from ottla.client.patience import Retry
from ottla.client.question import Question
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

LIST_OFFSETS: Final = 2
NEWEST: Final = 7
WITH_ISOLATION: Final = 2
"""The first version that knows transactions (KIP-98)."""
READ_COMMITTED: Final = 1
EARLIEST: Final = -2
LATEST: Final = -1
CONSUMER: Final = -1
READY_WITHIN_S: Final = 5.0
SHOWN_WITHIN_S: Final = 5.0
NOT_READY: Final = frozenset(
    {
        ErrorCode.leader_not_available,
        ErrorCode.not_leader_or_follower,
        ErrorCode.unknown_topic_or_partition,
    }
)
"""A new partition may have no leader yet, or one that has not opened it."""

Offsets = dict[TopicPartition, int]
Reasons = dict[TopicPartition, str]
"""Why there is no answer about a partition, as a part of a sentence."""


def asked_offsets(
    client: Client,
    wanted: Mapping[TopicPartition, int],
    within_s: float,
    *,
    committed_only: bool = False,
    known: Metadata | None = None,
) -> tuple[Offsets, Reasons]:
    """The offset of each partition at its time: EARLIEST, LATEST (the high watermark), or ms since
    1970 for the first record from then on, -1 without one. A leader has `within_s` to respond.
    `committed_only`: LATEST is the last stable offset, before which every transaction has ended.
    `known`: metadata of these topics that the client has just read.
    """
    found: Offsets = {}
    why: Reasons = {}
    missing = dict(wanted)
    retry = Retry(replace(client.patience, retry_for_s=READY_WITHIN_S))
    while missing:
        metadata = known or client.metadata(sorted({each.topic for each in missing}))
        known = None
        for leader, partitions in by_leader(missing, metadata.leaders).items():
            answers: dict[TopicPartition, int | ErrorCode | str]
            if leader in metadata.brokers:
                answers = _ask(
                    client,
                    leader,
                    {each: missing[each] for each in partitions},
                    within_s,
                    committed_only,
                )
            else:
                answers = {
                    each: ErrorCode.leader_not_available
                    if each in metadata.leaders
                    else ErrorCode.unknown_topic_or_partition
                    for each in partitions
                }
            for each, answer in answers.items():
                if isinstance(answer, ErrorCode):
                    if answer in NOT_READY and not retry.is_over:
                        continue
                    why[each] = reason_of(answer)
                elif isinstance(answer, str):
                    why[each] = answer
                else:
                    found[each] = answer
                del missing[each]
        if missing:
            retry.wait()
    return found, why


def _ask(
    client: Client,
    leader: int,
    wanted: Mapping[TopicPartition, int],
    within_s: float,
    committed_only: bool,
) -> dict[TopicPartition, int | ErrorCode | str]:
    """An offset, the leader's error, or why there was no response."""

    def build(messages: Messages) -> Any:
        topics = tuple(
            messages.ListOffsetsTopic(
                name=topic,
                partitions=tuple(
                    messages.ListOffsetsPartition(
                        partition_index=index,
                        current_leader_epoch=-1,
                        timestamp=wanted[TopicPartition(topic, index)],
                    )
                    for index in indexes
                ),
            )
            for topic, indexes in by_topic(wanted).items()
        )
        isolation = {"isolation_level": READ_COMMITTED} if committed_only else {}
        return messages.ListOffsetsRequest(replica_id=CONSUMER, topics=topics, **isolation)

    oldest = WITH_ISOLATION if committed_only else 1
    try:
        response = client.ask_broker(
            leader, Question(LIST_OFFSETS, NEWEST, build, oldest), within_s
        )
    except RetriableError:
        return dict.fromkeys(wanted, f"no response from its leader within {within_s:g} s")
    return {
        TopicPartition(topic.name, each.partition_index): each.offset
        if each.error_code is ErrorCode.none
        else each.error_code
        for topic in response.topics
        for each in topic.partitions
    }


def known_offsets(
    client: Client,
    partitions: Iterable[TopicPartition],
    *times: int,
    known: Metadata | None = None,
) -> tuple[list[Offsets], Reasons]:
    """The offsets at each of the times of partitions whose leaders respond within SHOWN_WITHIN_S;
    and for the other partitions the reason. `known`: as of `asked_offsets`.
    """
    within_s = min(SHOWN_WITHIN_S, client.patience.answer_s)
    asked, found = list(partitions), []
    why: Reasons = {}
    if asked and known is None:
        known = client.metadata(sorted({each.topic for each in asked}))
    for time in times:
        offsets, missing = asked_offsets(client, dict.fromkeys(asked, time), within_s, known=known)
        found.append(offsets)
        why.update(missing)
        asked = list(offsets)  # the same leader is not waited for twice
    return found, why


def all_offsets(
    client: Client, wanted: Mapping[TopicPartition, int], *, committed_only: bool = False
) -> Offsets:
    """As `asked_offsets`, of all. Raises ClientError if one has none."""
    found, why = asked_offsets(
        client, wanted, client.patience.answer_s, committed_only=committed_only
    )
    for each, reason in why.items():
        raise ClientError(f"cannot read the offsets of {each}: {reason}.")
    return found


def first_offsets(client: Client, partitions: Iterable[TopicPartition]) -> Offsets:
    """The first offset of each partition."""
    return all_offsets(client, dict.fromkeys(partitions, EARLIEST))


def end_offsets(client: Client, partitions: Iterable[TopicPartition]) -> Offsets:
    """The offset of each partition's next record as consumers see it (its high watermark)."""
    return all_offsets(client, dict.fromkeys(partitions, LATEST))


def stable_offsets(client: Client, partitions: Iterable[TopicPartition]) -> Offsets:
    """Where a reader of committed records ends in each partition (its last stable offset)."""
    return all_offsets(client, dict.fromkeys(partitions, LATEST), committed_only=True)


def offsets_at(client: Client, partitions: Iterable[TopicPartition], at_ms: int) -> Offsets:
    """The offset of each partition's first record at or after that time; its end if there is
    none.
    """
    found = all_offsets(client, dict.fromkeys(partitions, at_ms))
    after_all = [each for each, offset in found.items() if offset < 0]
    return found | end_offsets(client, after_all)
