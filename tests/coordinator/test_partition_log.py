import errno
import os
from dataclasses import replace
from typing import Any

import pytest

from ottla.coordinator.coordinator_log import LogMarker, LogRecord
from ottla.coordinator.partition_log import PartitionLog
from ottla.groups.offsets.commit import OffsetToCommit
from ottla.groups.offsets.transactional_commit import TransactionalCommitRequest
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import OFFSETS_TOPIC
from ottla.shards.step import ProducerEpoch, TransactionMarker


async def make(node_call: Any) -> PartitionLog:
    outcome = await node_call.node.topic_creation.ensure_offsets_topic()
    assert not outcome.failed
    return again(node_call)


def again(node_call: Any) -> PartitionLog:
    return PartitionLog(node_call.node.partitions.find(OFFSETS_TOPIC, 0))


async def test_what_is_appended_is_read_again(node_call: Any) -> None:
    log = await make(node_call)
    assert list(log.read_all()) == []
    assert log.append([(b"k", b"v"), (b"k", None)], 5) == 1
    assert log.append([(b"l", b"w")], 6) == 2
    assert [tuple(record) for record in log.read_all()] == [
        (0, b"k", b"v", 5, None), (1, b"k", None, 5, None), (2, b"l", b"w", 6, None),
    ]  # fmt: skip
    assert log.high_watermark == 3
    assert await log.committed(2)
    assert not await log.committed(3)


async def test_transactions_are_read_with_their_markers(node_call: Any) -> None:
    log = await make(node_call)
    producer = ProducerEpoch(7, 2)
    markers = [TransactionMarker(producer, is_commit, 5) for is_commit in (True, False)]
    for marker in markers:
        log.append([(b"k", b"v")], 5, producer)
        log.append([(b"l", b"w")], 5, producer)
        log.append_marker(marker, 6)
    assert list(log.read_all()) == [
        LogRecord(0, b"k", b"v", 5, producer),
        LogRecord(1, b"l", b"w", 5, producer),
        LogMarker(2, markers[0]),
        LogRecord(3, b"k", b"v", 5, producer),
        LogRecord(4, b"l", b"w", 5, producer),
        LogMarker(5, markers[1]),
    ]


async def test_a_transaction_is_verified_once(node_call: Any) -> None:
    log = await make(node_call)
    producer = ProducerEpoch(7, 2)
    first = log.begin_verification(producer, version_2=False)
    assert first.is_needed
    log.append([(b"k", b"v")], 5, producer, first.guard)
    second = log.begin_verification(producer, version_2=False)
    assert not second.is_needed
    log.append([(b"k", b"w")], 5, producer, second.guard)
    log.append_marker(TransactionMarker(producer, True, 5), 6)
    for ended in (first, second):
        # The transaction has ended since: a record would begin one that nobody ends.
        with pytest.raises(ApiError) as refused:
            log.append([(b"k", b"x")], 5, producer, ended.guard)
        assert refused.value.code is ErrorCode.invalid_txn_state
    assert log.begin_verification(producer, version_2=False).is_needed


async def test_a_fenced_producer_and_a_fenced_coordinator(node_call: Any) -> None:
    log = await make(node_call)
    log.append([(b"k", b"v")], 5, ProducerEpoch(7, 2))
    with pytest.raises(ApiError) as refused:
        log.begin_verification(ProducerEpoch(7, 1), version_2=False)
    assert refused.value.code is ErrorCode.invalid_producer_epoch
    log.append_marker(TransactionMarker(ProducerEpoch(7, 2), True, 5), 6)
    with pytest.raises(ApiError) as refused:
        log.append_marker(TransactionMarker(ProducerEpoch(7, 2), True, 4), 6)
    assert refused.value.code is ErrorCode.transaction_coordinator_fenced


async def test_an_open_transaction_of_a_group_ends_on_the_next_node(start_node: Any) -> None:
    settings = {
        "offsets_topic_num_partitions": "3",
        "transaction_partition_verification_enable": "false",
    }
    first = await start_node(**settings)
    await first.create("t")
    await first.node.topic_creation.ensure_offsets_topic()
    offset = OffsetToCommit("t", None, 0, 42, -1, "m")
    request = TransactionalCommitRequest("g", "id", ProducerEpoch(7, 2), -1, "", None, (offset,), 3)
    await first.node.groups.commit_in_transaction(request)
    await first.node.close()
    second = await start_node(**settings)
    groups = second.node.groups
    assert await groups.fetch_all("g") == {}
    await groups.complete_transaction(groups.partition_for("g"), 7, 2, True, 0)
    (found,) = (await groups.fetch_all("g", require_stable=True))["t"]
    assert (found.offset, found.metadata) == (42, "m")


def keys_of(log: PartitionLog) -> list[bytes | None]:
    return [record.key for record in log.read_all() if isinstance(record, LogRecord)]


async def test_more_than_one_read_holds(node_call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.coordinator.partition_log.READ_BYTES", 100)
    log = await make(node_call)
    for number in range(50):
        log.append([(b"%d" % number, bytes(number))], 5)
    assert keys_of(log) == [b"%d" % number for number in range(50)]


async def test_records_before_the_start_are_gone(node_call: Any) -> None:
    log = await make(node_call)
    log.append([(b"a", b""), (b"b", b""), (b"c", b"")], 5)
    node_call.node.partitions.find(OFFSETS_TOPIC, 0).log.advance_start(2)
    assert keys_of(log) == [b"c"]


async def test_compaction_leaves_the_newest_record_of_each_key(start_node: Any) -> None:
    """Batches without records, transactions without markers, and gaps are read over."""
    node_call = await start_node(
        offsets_topic_segment_bytes="80",
        log_cleaner_enable="false",
        log_cleaner_delete_retention_ms="0",
    )
    log = await make(node_call)
    partition = node_call.node.partitions.find(OFFSETS_TOPIC, 0)
    producer = ProducerEpoch(7, 2)
    log.append([(b"a", b"1"), (b"b", b"1")], 5)
    log.append([(b"a", b"2")], 5, producer)
    log.append_marker(TransactionMarker(producer, True, 5), 6)
    log.append([(b"b", b"2")], 5)
    log.append([(b"a", b"3")], 5)
    log.append([(b"c", None)], 5)
    log.append([(b"d", b"1")], 5)
    before = [each.offset for each in log.read_all()]
    assert before == list(range(8))
    for _ in range(3):  # markers and tombstones go in a later pass
        await node_call.node.log_maintenance._cleaner.compact(partition, only_if_due=False)
    records = [each for each in log.read_all() if isinstance(each, LogRecord)]
    kept = [(each.offset, each.key, each.value) for each in records if each.value is not None]
    assert kept == [(4, b"b", b"2"), (5, b"a", b"3"), (7, b"d", b"1")]


async def test_a_batch_too_large_is_refused(node_call: Any) -> None:
    log = await make(node_call)
    with pytest.raises(ApiError) as refused:
        log.append([(b"k", bytes(2_000_000))], 5)
    assert refused.value.code is ErrorCode.message_too_large
    assert log.high_watermark == 0


async def test_commits_of_a_group_are_there_for_the_next_node(start_node: Any) -> None:
    first = await start_node(offsets_topic_num_partitions="3")
    await first.create("t")
    await first.node.topic_creation.ensure_offsets_topic()
    build = first.request(8, 8)
    partition = build.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=42, committed_leader_epoch=-1, committed_metadata="m"
    )
    topics = (build.OffsetCommitRequestTopic(name="t", partitions=(partition,)),)
    answer = await first.ask(
        build.OffsetCommitRequest(
            group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=topics
        )
    )
    assert answer.topics[0].partitions[0].error_code is ErrorCode.none
    await first.node.close()
    second = await start_node(offsets_topic_num_partitions="3")
    (found,) = (await second.node.groups.fetch_all("g"))["t"]
    assert (found.offset, found.metadata) == (42, "m")


async def test_a_coordinator_of_an_earlier_leadership_writes_nothing(node_call: Any) -> None:
    """Another one has read the log since, here or elsewhere."""
    log = await make(node_call)
    log.append([(b"k", b"v")], 5)
    for broker in (2, 3):
        await node_call.appear(broker)
    await node_call.place(OFFSETS_TOPIC, (1, 2, 3), leader=2)
    await node_call.place(OFFSETS_TOPIC, (1, 2, 3), isr=(1,))
    with pytest.raises(ApiError) as refused:
        log.append([(b"k", b"w")], 5)
    assert refused.value.code is ErrorCode.not_leader_or_follower
    assert not await log.committed(0)
    later = again(node_call)
    assert later.append([(b"k", b"w")], 5) == 1
    assert await later.committed(1)


FULL = ApiError(ErrorCode.kafka_storage_error, "the disk is full")


def refuse(*_: object, **__: object) -> None:
    raise FULL


def no_space(*_: object) -> int:
    raise OSError(errno.ENOSPC, "the disk is full")


async def test_a_coordinator_whose_disk_is_full_ends_where_another_can_lead(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a leader does that a producer writes to: groups then find their coordinator there."""
    log, failure = await make(node_call), node_call.node.storage_failure
    monkeypatch.setattr(os, "pwritev", no_space)
    with pytest.raises(ApiError) as refused:
        log.append([(b"k", b"v")], 5)
    assert refused.value.code is ErrorCode.kafka_storage_error
    assert failure.reason is None
    await node_call.appear(2)
    await node_call.place(OFFSETS_TOPIC, (1, 2))
    monkeypatch.undo()
    log = again(node_call)
    with pytest.raises(ApiError) as refused:
        log.append([(b"k", bytes(2_000_000))], 5)
    assert refused.value.code is ErrorCode.message_too_large
    assert failure.reason is None
    monkeypatch.setattr(os, "pwritev", no_space)
    with pytest.raises(ApiError) as refused:
        log.append([(b"k", b"v")], 5)
    assert failure.reason is not None
    assert failure.reason.endswith(
        ": the disk is full: this broker stops so that others can take over"
    )


async def test_a_group_s_records_that_cannot_be_synced_end_the_broker_too(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(node_call)
    await node_call.appear(2)
    await node_call.place(OFFSETS_TOPIC, (1, 2))
    log, partition = again(node_call), node_call.node.partitions.find(OFFSETS_TOPIC, 0)
    partition.log.config = replace(partition.log.config, flush_messages=1)
    offset = log.append([(b"k", b"v")], 5)
    monkeypatch.setattr("ottla.log.flush.FlushTask.run", refuse)
    with pytest.raises(ApiError) as refused:
        await log.committed(offset)
    assert str(refused.value) == str(FULL)
    assert node_call.node.storage_failure.reason is not None
