"""The stored batches of a partition, as consumers get them: ListOffsets and Fetch.

For a few of them, at any offset. To consume a topic, use a consumer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ottla.client.admin.partitions import by_leader, by_topic
from ottla.client.client import Client
from ottla.client.errors import Needs, RefusedError
from ottla.client.question import Question
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

FETCH: Final = 1
LIST_OFFSETS: Final = 2
DELETE_RECORDS: Final = 21
ANSWER_TIMEOUT_MS: Final = 10_000
FETCH_NEWEST: Final = 12
"""Later versions name topics by id, which is not needed here."""
FETCH_OLDEST: Final = 4
"""The first with the format of batches (Apache Kafka 0.11)."""
LIST_NEWEST: Final = 7
EARLIEST: Final = -2
LATEST: Final = -1
READ_COMMITTED: Final = 1
NO_SESSION_EPOCH: Final = -1
CONSUMER: Final = -1
MAX_BYTES: Final = 1 << 20
"""A batch that is larger comes alone and whole (KIP-74)."""


class AbortedTransaction(NamedTuple):
    """A transaction that was aborted, with its first record in this partition."""

    producer_id: int
    first_offset: int


class Batches(NamedTuple):
    """What one Fetch returned from an offset on."""

    high_watermark: int
    last_stable_offset: int
    """-1 if the broker does not say."""
    aborted: tuple[AbortedTransaction, ...]
    """Those with records or markers in `data`."""
    data: bytes
    """Batches; the first one contains the offset or lies after it, the last one may be cut."""


def delete_records(
    client: Client, before: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Deletes what is before these offsets (KIP-107). Returns the new log start offsets. Raises
    RefusedError for the first partition that is refused.
    """
    leaders = client.metadata(sorted({each.topic for each in before})).leaders
    found: dict[TopicPartition, int] = {}
    for leader, partitions in by_leader(before, leaders).items():
        response = client.ask_broker(leader, _delete({each: before[each] for each in partitions}))
        for topic in response.topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.name, each.partition_index)
                if each.error_code is not ErrorCode.none:
                    raise RefusedError(
                        f"delete records of {partition}",
                        each.error_code,
                        None,
                        Needs("Delete", topic.name),
                    )
                found[partition] = each.low_watermark
    return {partition: found[partition] for partition in before}


def _delete(before: Mapping[TopicPartition, int]) -> Question:
    def build(messages: Messages) -> Any:
        topics = tuple(
            messages.DeleteRecordsTopic(
                name=topic,
                partitions=tuple(
                    messages.DeleteRecordsPartition(
                        partition_index=index, offset=before[TopicPartition(topic, index)]
                    )
                    for index in indexes
                ),
            )
            for topic, indexes in by_topic(before).items()
        )
        return messages.DeleteRecordsRequest(topics=topics, timeout=ANSWER_TIMEOUT_MS)

    return Question(DELETE_RECORDS, 2, build)


def offset_at(client: Client, leader: int, topic_partition: TopicPartition, timestamp: int) -> int:
    """The log start offset (EARLIEST) or the high watermark (LATEST) of a partition."""

    def build(messages: Messages) -> Any:
        partition = messages.ListOffsetsPartition(
            partition_index=topic_partition.partition, current_leader_epoch=-1, timestamp=timestamp
        )
        topic = messages.ListOffsetsTopic(name=topic_partition.topic, partitions=(partition,))
        return messages.ListOffsetsRequest(replica_id=CONSUMER, topics=(topic,))

    response = client.ask_broker(leader, Question(LIST_OFFSETS, LIST_NEWEST, build, 1))
    found = response.topics[0].partitions[0]
    if found.error_code is not ErrorCode.none:
        raise RefusedError(
            f"read the offsets of {topic_partition}",
            found.error_code,
            None,
            Needs("Describe", topic_partition.topic),
        )
    return int(found.offset)


def fetch_batches(
    client: Client, leader: int, topic_partition: TopicPartition, offset: int
) -> Batches:
    """The batches from `offset` on, MAX_BYTES of them, up to the last stable offset: as under
    read_committed, with the aborted transactions among them. Does not wait for more.

    Raises RefusedError, with offset_out_of_range for an offset that the log does not have.
    """

    def build(messages: Messages) -> Any:
        partition = messages.FetchPartition(
            partition=topic_partition.partition,
            current_leader_epoch=-1,
            fetch_offset=offset,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=MAX_BYTES,
        )
        return messages.FetchRequest(
            replica_id=CONSUMER,
            max_wait=0,
            min_bytes=0,
            max_bytes=MAX_BYTES,
            isolation_level=isolation,
            session_epoch=NO_SESSION_EPOCH,
            topics=(messages.FetchTopic(topic=topic_partition.topic, partitions=(partition,)),),
        )

    isolation = READ_COMMITTED
    found = _fetched(
        client, leader, topic_partition, Question(FETCH, FETCH_NEWEST, build, FETCH_OLDEST)
    )
    if 0 <= found.last_stable_offset <= offset < found.high_watermark:
        isolation = 0  # of an open transaction, or after one
        found = _fetched(
            client, leader, topic_partition, Question(FETCH, FETCH_NEWEST, build, FETCH_OLDEST)
        )._replace(last_stable_offset=found.last_stable_offset)
    return found


def _fetched(
    client: Client, leader: int, topic_partition: TopicPartition, question: Question
) -> Batches:
    response = client.ask_broker(leader, question)
    found = response.responses[0].partitions[0]
    if found.error_code is not ErrorCode.none:
        raise RefusedError(
            f"read {topic_partition}", found.error_code, None, Needs("Read", topic_partition.topic)
        )
    return Batches(
        found.high_watermark,
        found.last_stable_offset,
        tuple(
            AbortedTransaction(each.producer_id, each.first_offset)
            for each in found.aborted_transactions or ()
        ),
        bytes(found.records or b""),
    )
