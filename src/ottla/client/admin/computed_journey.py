"""The journey of a message on brokers that do not record it, like Apache Kafka's.

What any Kafka broker can tell now: the record and its batch, how its partition was chosen, its
transaction, what groups have committed, and the topic's retention. Nothing of it has a time, except
the timestamps that are stored. The document is that of Ottla's brokers, with `computed` true.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ottla.client.admin.committed_offsets import committed_offsets
from ottla.client.admin.configs import topic_settings
from ottla.client.admin.records import (
    EARLIEST,
    LATEST,
    Batches,
    fetch_batches,
    offset_at,
)
from ottla.client.admin.transactions import Transactions
from ottla.client.client import Client
from ottla.client.errors import ClientError, RefusedError, UnsupportedError
from ottla.client.metadata import Metadata, Partition
from ottla.client.topic_partition import TopicPartition
from ottla.journey.explain import explain
from ottla.journey.facts import Facts, KnownGroups, LogLocation, Position
from ottla.journey.near_keys import OFFSETS_BEFORE, keys_of_producer
from ottla.journey.record_in_batch import find_record
from ottla.journey.transactions import CoordinatedTransaction, OpenTransaction, TransactionFacts
from ottla.log.config import LogConfig
from ottla.protocol.errors import ErrorCode
from ottla.records.errors import CorruptBatchError, InvalidRecordError
from ottla.records.header import HEADER_BYTES, BatchHeader, read_header

Document = dict[str, Any]
StoredBatch = tuple[BatchHeader, bytes]
Span = tuple[int, int]
"""The log start offset and the high watermark."""

MAX_MARKERS_PASSED: Final = 20
"""Batches at the end of a log that are asked for to find the newest message."""
HOW: Final = "These brokers record no journeys: give PARTITION and OFFSET, or --latest."


class UnrecordedError(ClientError):
    """Only brokers that record journeys can answer the question."""

    is_usage = True


def computed_journey(client: Client, question: Document) -> Document:
    """The journey document, or one with an `error`, as Ottla's brokers answer it.

    Raises UnrecordedError for a search by key, and ClientError.
    """
    topic = question["topic"]
    metadata = client.metadata([topic])
    known = metadata.topics.get(topic)
    if known is None or known.error is not ErrorCode.none:
        return _error("unknown_topic", f"there is no topic {topic!r}")
    if question.get("key") is not None:
        find = f"To find the messages of a key: ottla consume {topic} --key KEY"
        raise UnrecordedError("a search by key needs brokers of Ottla.", f"{HOW}\n  {find}")
    topic_partition, offset, span = _message(client, metadata, question, known.partitions)
    if topic_partition is None:
        return _error("which_offset", "say which message: give PARTITION and OFFSET, or --latest")
    partition = known.partitions.get(topic_partition.partition)
    if partition is None:
        return _error(
            "unknown_partition", f"topic {topic!r} has no partition {topic_partition.partition}"
        )
    if partition.leader not in metadata.brokers:
        return _error(
            "not_leader", f"partition {topic_partition.partition} of {topic!r} has no leader"
        )
    span = span or _span(client, topic_partition, partition.leader)
    facts = _facts(client, topic_partition, offset, partition, len(known.partitions), span)
    document = explain(facts) | {"computed": True}
    if document["appended"] is not None:
        document["appended"]["broker"] = None  # the partition may have moved since
    return document


def _error(code: str, message: str) -> Document:
    return {"journey": 1, "error": {"code": code, "message": message}}


def _message(
    client: Client,
    metadata: Metadata,
    question: Document,
    partitions: Mapping[int, Partition],
) -> tuple[TopicPartition | None, int, Span | None]:
    """The message that is asked for: its partition (None: not said), its offset, and the offsets of
    the partition, if they were asked.
    """
    topic, index, offset = question["topic"], question.get("partition"), question.get("offset")
    if index is None and len(partitions) == 1:
        index = 0
    if not question.get("latest"):
        if index is None or offset is None:
            return None, -1, None
        return TopicPartition(topic, index), offset, None
    wanted = [index] if index is not None else sorted(partitions)
    newest: tuple[int, TopicPartition, int, Span] | None = None
    without_leader: list[TopicPartition] = []
    for each in wanted:
        topic_partition = TopicPartition(topic, each)
        if each not in partitions or partitions[each].leader not in metadata.brokers:
            without_leader.append(topic_partition)
            continue
        leader = partitions[each].leader
        span = _span(client, topic_partition, leader)
        found = _newest(client, leader, topic_partition, span)
        if found is not None:
            this = (found[0], topic_partition, found[1], span)
            newest = max(newest or this, this)
    if newest is None and without_leader:
        return without_leader[0], -1, None  # the error about it
    if newest is None:
        raise ClientError(f"topic {topic!r} has no records.")
    return newest[1:]


def _span(client: Client, topic_partition: TopicPartition, leader: int) -> Span:
    start = offset_at(client, leader, topic_partition, EARLIEST)
    return start, offset_at(client, leader, topic_partition, LATEST)


def _newest(
    client: Client, leader: int, topic_partition: TopicPartition, span: Span
) -> tuple[int, int] | None:
    """The time and offset of the partition's last message that is no transaction marker, as far as
    MAX_MARKERS_PASSED allow; None if it has no records.
    """
    start, end = span
    offset = last = end - 1
    at_ms = -1
    for _ in range(MAX_MARKERS_PASSED):
        if offset < start:
            break
        header = next(
            (each for each, _ in _stored(fetch_batches(client, leader, topic_partition, offset))),
            None,
        )
        if header is None:
            break
        at_ms = max(at_ms, header.max_timestamp)
        if not header.is_control:
            return at_ms, offset
        offset = header.base_offset - 1
    return None if last < start else (at_ms, last)


def _facts(
    client: Client,
    topic_partition: TopicPartition,
    offset: int,
    partition: Partition,
    count: int,
    span: Span,
) -> Facts:
    leader = partition.leader
    start, end = span
    location, transactions = None, None
    near: frozenset[bytes] = frozenset()
    if start <= offset < end:
        found = fetch_batches(client, leader, topic_partition, offset)
        location = _location(found, offset)
        if location is not None:
            transactions = _transactions(client, topic_partition, found, location.header, offset)
            near = _near_keys(
                client, leader, topic_partition, max(start, offset - OFFSETS_BEFORE), location
            )
    commits = committed_offsets(client, topic_partition)
    return Facts(
        topic=topic_partition.topic,
        partition=topic_partition.partition,
        offset=offset,
        now_ms=time.time_ns() // 1_000_000,
        broker_id=leader,
        partition_count=count,
        replica_count=len(partition.replicas),
        start_offset=start,
        end_offset=end,
        high_watermark=end,
        config=_log_config(client, topic_partition.topic),
        segments=(),
        steps=None,
        opening=None,
        positions={
            group: Position(each.offset, each.metadata, each.leader_epoch)
            for group, each in commits.by_group.items()
        },
        groups=KnownGroups(commits.unanswered),
        location=location,
        replicas=partition.replicas,
        isr=partition.in_sync,
        leader=leader,
        leader_epoch=partition.leader_epoch,
        transactions=transactions,
        near_keys=near,
    )


def _stored(batches: Batches) -> Iterator[StoredBatch]:
    """The whole batches of a response. Raises CorruptBatchError."""
    position, data = 0, batches.data
    while len(data) - position >= HEADER_BYTES:
        header = read_header(data[position : position + HEADER_BYTES])
        if len(data) - position < header.size_bytes:
            return
        yield header, data[position : position + header.size_bytes]
        position += header.size_bytes


def _location(batches: Batches, offset: int) -> LogLocation | None:
    """None if compaction has removed the whole batch around the offset."""
    record = damage = None
    try:
        for header, batch in _stored(batches):
            if header.base_offset > offset:
                return None
            if header.last_offset < offset:
                continue
            try:
                record = find_record(header, batch, offset)
            except InvalidRecordError as error:
                damage = str(error)
            return LogLocation(None, "", "", "", None, -1, header, record, damage)
    except CorruptBatchError as error:
        raise ClientError(f"cannot read the batch of offset {offset}: {error}.") from None
    return None


def _near_keys(
    client: Client, leader: int, topic_partition: TopicPartition, start: int, location: LogLocation
) -> frozenset[bytes]:
    """Keys of records near it of the same producer."""
    if location.record is None or location.record.record.key is None:
        return frozenset()
    try:
        found = fetch_batches(client, leader, topic_partition, start)
    except RefusedError as refused:
        if refused.code is not ErrorCode.offset_out_of_range:  # retention deleted them meanwhile
            raise
        return frozenset()
    return keys_of_producer(_stored(found), location.header.producer_id)


def _transactions(
    client: Client,
    topic_partition: TopicPartition,
    found: Batches,
    header: BatchHeader,
    offset: int,
) -> TransactionFacts:
    """What Fetch says of the record's transaction; and which one is open, where it is not over."""
    stable = found.last_stable_offset if found.last_stable_offset >= 0 else found.high_watermark
    if offset < stable:
        aborted = any(
            each.producer_id == header.producer_id and each.first_offset <= header.base_offset
            for each in found.aborted
        )
        return TransactionFacts(stable, was_aborted=aborted)
    try:
        known = Transactions(client)
        producers, refused = known.open_producers([topic_partition])
        coordinated = _coordinated(known, topic_partition, [each.producer_id for each in producers])
    except UnsupportedError:  # these requests are of Apache Kafka 3.0
        return TransactionFacts(stable, None, searched_to=offset)
    if refused:
        return TransactionFacts(stable, None, searched_to=offset)
    return TransactionFacts(
        stable,
        [
            OpenTransaction(each.producer_id, each.epoch, each.first_offset, each.last_write_ms)
            for each in producers
        ],
        searched_to=offset,  # its marker was not searched
        coordinated=coordinated,
    )


def _coordinated(
    known: Transactions, topic_partition: TopicPartition, producer_ids: Sequence[int]
) -> dict[int, CoordinatedTransaction]:
    """What the coordinators say of these producers."""
    if not producer_ids:
        return {}
    listed = known.listed(producer_ids=producer_ids)
    return {
        each.producer_id: CoordinatedTransaction(
            name,
            each.coordinator,
            each.state,
            each.started_ms,
            each.timeout_ms,
            topic_partition in each.partitions,
        )
        for name, each in known.described(one.transactional_id for one in listed).items()
    }


def _log_config(client: Client, topic: str) -> LogConfig:
    """As far as retention needs it."""
    settings = {each.name: each.value for each in topic_settings(client, [topic])[topic]}
    policy = settings.get("cleanup.policy") or "delete"
    return LogConfig(
        retention_bytes=int(settings.get("retention.bytes") or -1),
        retention_ms=int(settings.get("retention.ms") or -1),
        cleanup_delete="delete" in policy,
        cleanup_compact="compact" in policy,
    )
