"""A partition in a node: as the only replica, and as one of three without the other brokers."""

import asyncio
import errno
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ottla.controller.image import BrokerImage, PartitionState
from ottla.log.flush import FlushTask
from ottla.log.producer_load import ProducerLoad
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.build import build_batch
from ottla.records.header import iterate_headers
from ottla.records.record import Record
from ottla.replica.partition_role import Role
from ottla.replication.leader import FetchingReplica
from ottla.runtime.waiting import Change, Waiter, watch

WAIT_MS = 60_000
FULL = ErrorCode.kafka_storage_error


class Watching:
    """Notes what happens to a partition."""

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def changed(self, watched: Any, change: Change) -> None:
        self.changes.append(change)


@pytest.fixture
def alone(node_call: Any) -> Any:
    """The only replica."""
    return node_call.node.partitions.find("t", 0)


async def test_an_append_gives_the_next_offsets_and_raises_the_high_watermark(
    node_call: Any, alone: Any
) -> None:
    first = alone.appends.append(node_call.batch(b"a", b"b"), "me", to_all=True)
    assert first == (0, 1, -1, 0, alone.leadership, True)
    assert alone.appends.append(node_call.batch(b"c"), "me", to_all=True).first_offset == 2
    assert alone.high_watermark == 3
    counts = alone.counts
    assert (counts.batches_in, counts.records_in) == (2, 3)
    assert counts.bytes_in == alone.log.size_bytes


async def test_an_append_wakes_waiters(node_call: Any, alone: Any) -> None:
    waiting = asyncio.create_task(Waiter([alone]).wait(60_000))
    await asyncio.sleep(0)
    alone.appends.append(node_call.batch(b"a"), "me", to_all=True)
    assert await waiting
    assert alone.waiters is None


async def test_a_refused_append_changes_nothing(node_call: Any, alone: Any) -> None:
    for records in (None, b"", b"x" * 100, node_call.batch(b"a")[:-1]):
        with pytest.raises(ApiError):
            alone.appends.append(records, "me", to_all=True)
    assert (alone.high_watermark, alone.counts.batches_in) == (0, 0)


async def test_a_duplicate_is_not_counted(node_call: Any, alone: Any) -> None:
    batch = node_call.batch(b"a", producer_id=3, producer_epoch=0, base_sequence=0)
    assert alone.appends.append(batch, "me", to_all=True).last_offset == 0
    assert alone.appends.append(batch, "me", to_all=True).last_offset == 0
    assert (alone.high_watermark, alone.counts.records_in) == (1, 1)
    assert [each.producer_id for each in alone.active_producers()] == [3]


async def test_one_replica_is_enough_if_there_is_only_one(node_call: Any, alone: Any) -> None:
    """min.insync.replicas is limited to the number of replicas (KIP-966)."""
    alone.min_insync_replicas = 2
    alone.appends.append(node_call.batch(b"a"), "me", to_all=True)


async def test_only_replica_acknowledges_at_once(node_call: Any, alone: Any) -> None:
    for to_all in (True, False):
        appended = alone.appends.append(node_call.batch(b"a"), "me", to_all=to_all)
        assert alone.is_acknowledged(appended)
    await node_call.place(alone.topic, (2, 1))
    assert not alone.is_acknowledged(appended)


async def test_acknowledged_only_when_on_disk(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """flush.messages=1: one sync covers all appends before it."""
    await node_call.create("synced", flush_messages="1")
    alone = node_call.node.partitions.find("synced", 0)
    may_sync, syncs = threading.Event(), []
    run = FlushTask.run

    def slowly(task: FlushTask) -> None:
        syncs.append(task.up_to_offset)
        assert may_sync.wait(30)
        run(task)

    monkeypatch.setattr(FlushTask, "run", slowly)
    waiting = []
    for _ in range(5):
        appended = alone.appends.append(node_call.batch(b"a"), "me", to_all=True)
        assert not alone.is_acknowledged(appended)
        waiting.append(asyncio.create_task(alone.acknowledged(appended, WAIT_MS)))
        await asyncio.sleep(0)
    await asyncio.sleep(0.02)
    assert not any(each.done() for each in waiting)
    may_sync.set()
    await asyncio.gather(*waiting)
    assert alone.log.recovery_point == 5
    assert len(syncs) == 2


async def test_a_truncated_offset_is_synced_again(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await node_call.create("synced", flush_messages="1")
    alone = node_call.node.partitions.find("synced", 0)
    syncs: list[int] = []
    run = FlushTask.run

    def noted(task: FlushTask) -> None:
        syncs.append(task.up_to_offset)
        run(task)

    monkeypatch.setattr(FlushTask, "run", noted)
    for _ in range(2):
        appended = alone.appends.append(node_call.batch(b"a"), "me", to_all=False)
        await alone.acknowledged(appended, WAIT_MS)
    await node_call.place("synced", (2, 1))
    alone.truncate_to(0, 0)
    await node_call.place("synced", (1, 2))
    appended = alone.appends.append(node_call.batch(b"b"), "me", to_all=False)
    await alone.acknowledged(appended, WAIT_MS)
    assert syncs == [1, 2, 1]


async def test_the_log_start_never_moves_back(node_call: Any, alone: Any) -> None:
    for _ in range(5):
        alone.appends.append(node_call.batch(b"a"), "me", to_all=True)
    assert alone.delete_before(3) == 3
    assert alone.delete_before(2) == 3
    for offset in (-2, 6):
        with pytest.raises(ApiError):
            alone.delete_before(offset)
    assert alone.delete_before(-1) == 5


async def test_a_batch_of_a_transaction_is_refused(node_call: Any, alone: Any) -> None:
    batch = node_call.batch(
        b"a", producer_id=3, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    with pytest.raises(ApiError) as refused:
        alone.appends.append(batch, "me", to_all=True)
    assert refused.value.code is ErrorCode.transactional_id_authorization_failed
    assert alone.last_stable_offset == alone.high_watermark == 0


# One of three replicas.


def state(
    leader: int = 1, epoch: int = 1, isr: tuple[int, ...] = (1, 2), at: int = 1
) -> PartitionState:
    return PartitionState(leader, epoch, (1, 2, 3), isr, at)


@pytest.fixture
def partition(node_call: Any) -> Any:
    found = node_call.node.partitions.find("t", 0)
    for broker in (2, 3):
        node_call.node.image.brokers[broker] = BrokerImage(broker, ())
    assert found.update(state(), 0) is Role.LEADER
    return found


def fetch(partition: Any, broker: int, offset: int, **changes: Any) -> Any:
    return partition.read_for_replica(
        FetchingReplica(broker),
        offset,
        start_offset=changes.pop("start", 0),
        max_bytes=1 << 20,
        min_one_batch=True,
        **changes,
    )


def consume(partition: Any, offset: int, **changes: Any) -> Any:
    return partition.reader.read(offset, max_bytes=1 << 20, min_one_batch=True, **changes)


def code_of(call: Any, *arguments: Any, **named: Any) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        call(*arguments, **named)
    return refused.value.code


def append_transaction(partition: Any, batch: Any, leadership: int) -> None:
    """Append two records and the marker that commits them, as the broker itself does."""
    marker = [Record(0, 5, bytes((0, 0, 0, 1)), bytes((0, 0, 0, 0, 0, 2)))]
    written_by: dict[str, Any] = {"producer_id": 6, "producer_epoch": 0, "is_transactional": True}
    for built in (
        batch(b"a", b"b", base_sequence=0, **written_by),
        build_batch(marker, is_control=True, **written_by),
    ):
        partition.appends.append_own(built, list(iterate_headers(built)), 5, leadership)


async def test_a_transaction_is_stable_once_its_marker_is_committed(
    node_call: Any, partition: Any
) -> None:
    append_transaction(partition, node_call.batch, partition.leadership)
    fetch(partition, 2, 2)
    assert (partition.high_watermark, partition.last_stable_offset) == (2, 0)
    assert consume(partition, 0, committed_only=True).size_bytes == 0
    fetch(partition, 2, 3)
    assert (partition.high_watermark, partition.last_stable_offset) == (3, 3)
    assert consume(partition, 0, committed_only=True).size_bytes > 0


async def test_a_follower_waits_for_the_marker_to_be_committed_too(
    node_call: Any, partition: Any
) -> None:
    append_transaction(partition, node_call.batch, partition.leadership)
    copied = bytes(fetch(partition, 2, 0).range.read())
    partition.truncate_fully(0, 5)
    partition.update(state(leader=2, epoch=2, at=2), 0)
    for high_watermark, stable in ((2, 0), (3, 3)):
        partition.append_fetched(
            copied,
            list(iterate_headers(copied)) if partition.log.end_offset == 0 else [],
            leader_high_watermark=high_watermark,
            leader_log_start=0,
            now_ms=5,
        )
        assert (partition.high_watermark, partition.last_stable_offset) == (high_watermark, stable)


async def test_only_records_on_the_whole_isr_are_committed_and_read(
    node_call: Any, partition: Any
) -> None:
    partition.appends.append(node_call.batch(b"a", b"b"), "me", to_all=True)
    assert (partition.high_watermark, partition.last_stable_offset) == (0, 0)
    assert consume(partition, 0).size_bytes == 0
    assert fetch(partition, 2, 0).size_bytes > 0
    assert fetch(partition, 2, 2).high_watermark == 2
    assert consume(partition, 0).size_bytes > 0


async def test_a_producer_waits_for_the_high_watermark(node_call: Any, partition: Any) -> None:
    by_leader = partition.appends.append(node_call.batch(b"a"), "me", to_all=False)
    assert partition.is_acknowledged(by_leader)
    await partition.acknowledged(by_leader, 0)
    appended = by_leader._replace(to_all=True)
    assert not partition.is_acknowledged(appended)
    waiting = asyncio.create_task(partition.acknowledged(appended, 60_000))
    await asyncio.sleep(0)
    assert not waiting.done()
    fetch(partition, 2, 1)
    await waiting
    await partition.acknowledged(appended, 0)


async def test_waits_fail_when_another_broker_leads(node_call: Any, partition: Any) -> None:
    appended = partition.appends.append(node_call.batch(b"a"), "me", to_all=True)
    waiting = asyncio.create_task(partition.acknowledged(appended, 60_000))
    await asyncio.sleep(0)
    assert partition.update(state(leader=2, epoch=2, at=2), 0) is Role.FOLLOWER
    with pytest.raises(ApiError) as refused:
        await waiting
    assert refused.value.code is ErrorCode.not_leader_or_follower
    assert (
        code_of(partition.appends.append, node_call.batch(b"a"), "me", to_all=True)
        is refused.value.code
    )


async def test_too_few_in_sync_before_and_after_the_append(node_call: Any, partition: Any) -> None:
    partition.min_insync_replicas = 2
    appended = partition.appends.append(node_call.batch(b"a"), "me", to_all=True)
    fetch(partition, 2, 1)
    partition.update(state(isr=(1,), at=2), 0)
    batch = node_call.batch(b"b")
    code = code_of(partition.appends.append, batch, "me", to_all=True)
    assert code is ErrorCode.not_enough_replicas
    own = code_of(
        partition.appends.append_own, batch, list(iterate_headers(batch)), 0, partition.leadership
    )
    assert own is ErrorCode.not_enough_replicas
    assert partition.log.end_offset == 1
    partition.appends.append(batch, "me", to_all=False)
    with pytest.raises(ApiError) as refused:
        await partition.acknowledged(appended, 1000)
    assert refused.value.code is ErrorCode.not_enough_replicas_after_append


async def test_waits_fail_when_the_isr_shrank_before_the_answer(
    node_call: Any, partition: Any
) -> None:
    partition.min_insync_replicas = 2
    appended = partition.appends.append(node_call.batch(b"a"), "me", to_all=True)
    waiting = asyncio.create_task(partition.acknowledged(appended, 60_000))
    await asyncio.sleep(0)
    fetch(partition, 2, 1)  # committed, and in the same turn of the loop:
    partition.update(state(isr=(1,), at=2), 0)
    with pytest.raises(ApiError) as refused:
        await waiting
    assert refused.value.code is ErrorCode.not_enough_replicas_after_append


async def test_an_isr_below_the_minimum_commits_nothing(node_call: Any, partition: Any) -> None:
    partition.min_insync_replicas = 2
    appended = partition.appends.append(node_call.batch(b"a"), "me", to_all=True)
    partition.update(state(isr=(1,), at=2), 0)
    assert partition.high_watermark == 0
    with pytest.raises(ApiError) as refused:
        await partition.acknowledged(appended, 1)
    assert refused.value.code is ErrorCode.request_timed_out


async def test_an_epoch_whose_first_record_cannot_be_written_does_no_harm(
    node_call: Any, partition: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition.appends.append(node_call.batch(b"a"), "me", to_all=True)
    fetch(partition, 2, 1)
    partition.update(state(leader=2, epoch=2, at=2), 0)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr(os, "pwritev", full)
    assert partition.update(state(epoch=3, isr=(1,), at=3), 0) is Role.LEADER
    assert consume(partition, 0).size_bytes > 0
    assert code_of(partition.appends.append, node_call.batch(b"b"), "me", to_all=True) is FULL
    assert partition.log.epochs.end_of(1, partition.log.end_offset) == (1, 1)
    monkeypatch.undo()
    assert partition.appends.append(node_call.batch(b"b"), "me", to_all=True).last_offset == 1
    assert partition.log.epochs.entries[-1] == (3, 1)


async def test_older_deltas_are_ignored(partition: Any) -> None:
    assert partition.update(state(leader=2, epoch=0, at=9), 0) is Role.LEADER
    assert partition.update(state(isr=(1,), at=0), 0) is Role.LEADER
    assert partition.state == state()
    assert partition.update(state(leader=-1, epoch=2, at=2), 0) is Role.NONE
    assert code_of(consume, partition, 0, leader_only=False) is ErrorCode.not_leader_or_follower


async def test_an_unknown_broker_is_not_a_replica(partition: Any) -> None:
    assert code_of(fetch, partition, 9, 0) is ErrorCode.not_leader_or_follower
    unknown = code_of(fetch, partition, 9, 0, leader_epoch=1)
    assert unknown is ErrorCode.unknown_leader_epoch


async def test_a_caught_up_follower_is_proposed(node_call: Any, partition: Any) -> None:
    partition.appends.append(node_call.batch(b"a"), "me", to_all=True)
    fetch(partition, 2, 1)
    assert partition.in_sync_change(0) is None
    proposed: list[Any] = []
    node_call.node._isr_maintenance._propose = lambda _, change: proposed.append(change)
    fetch(partition, 3, 1)
    (change,) = proposed
    assert [broker for broker, _ in change.isr] == [1, 2, 3]
    partition.in_sync_answered(ErrorCode.none, state(isr=(1, 2, 3), at=2))
    assert partition.state.isr == (1, 2, 3)


async def test_a_follower_that_left_is_heard_again_without_an_append(
    node_call: Any, partition: Any
) -> None:
    """Also if it has fetched all there is before the controller's answer came."""
    partition.appends.append(node_call.batch(b"a"), "me", to_all=True)
    fetch(partition, 2, 1)
    watcher = Watching()
    watch(partition, watcher)
    joined = state(isr=(1, 2, 3), at=2)
    partition.in_sync_answered(ErrorCode.none, joined)
    assert watcher.changes == []
    partition.in_sync_answered(ErrorCode.none, state(isr=(1, 3), at=3))
    assert watcher.changes == [Change.LEFT]
    assert not fetch(partition, 2, 1).at_end


async def test_latest_is_not_available_before_the_epoch_is_reached(
    node_call: Any, partition: Any
) -> None:
    partition.appends.append(node_call.batch(b"a"), "me", to_all=True)
    partition.update(state(leader=2, epoch=2, at=2), 0)
    partition.update(state(epoch=3, at=3), 0)
    assert code_of(partition.reader.check_latest_known) is ErrorCode.offset_not_available
    fetch(partition, 2, 1)
    partition.reader.check_latest_known()


async def test_a_follower_copies_truncates_and_serves_committed_records(
    node_call: Any, partition: Any
) -> None:
    partition.appends.append(node_call.batch(b"a"), "me", to_all=True)
    partition.appends.append(node_call.batch(b"b"), "me", to_all=True)
    data = partition.log.read(0, max_bytes=1 << 20).read()
    partition.update(state(leader=2, epoch=2, at=2), 0)
    partition.truncate_to(1, 5)
    assert partition.log.end_offset == 1
    headers = list(iterate_headers(data))
    partition.append_fetched(
        data[headers[0].size_bytes :], headers[1:],
        leader_high_watermark=1, leader_log_start=0, now_ms=6,
    )  # fmt: skip
    assert (partition.log.end_offset, partition.high_watermark) == (2, 1)
    assert consume(partition, 1, leader_only=False).size_bytes == 0
    partition.append_fetched(b"", [], leader_high_watermark=2, leader_log_start=1, now_ms=7)
    assert (partition.high_watermark, partition.log.start_offset) == (2, 1)
    assert consume(partition, 1, leader_only=False).size_bytes > 0
    partition.truncate_fully(40, 8)
    assert (partition.log.start_offset, partition.high_watermark) == (40, 40)


@pytest.fixture
def may_load(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Until it is set, no thread reads producers after a truncation."""
    may_load, run = threading.Event(), ProducerLoad.run

    def later(load: ProducerLoad) -> None:
        assert may_load.wait(30)
        run(load)

    monkeypatch.setattr(ProducerLoad, "run", later)
    yield may_load
    may_load.set()


async def test_a_leader_whose_producers_are_still_read_refuses_what_needs_them(
    node_call: Any, partition: Any, may_load: threading.Event
) -> None:
    """In Kafka it would not lead yet: its fetcher holds the log's lock."""

    def batch(sequence: int) -> bytes:
        built: bytes = node_call.batch(
            b"a", producer_id=3, producer_epoch=0, base_sequence=sequence
        )
        return built

    elsewhere = ErrorCode.not_leader_or_follower
    for sequence in range(3):
        partition.appends.append(batch(sequence), "me", to_all=True)
    fetch(partition, 2, 2)
    partition.update(state(leader=2, epoch=2, at=2), 0)
    partition.truncate_to(2, 5)
    assert partition.update(state(epoch=3, at=3), 0) is Role.LEADER
    assert code_of(partition.appends.append, batch(2), "me", to_all=True) is elsewhere
    assert code_of(partition.appends.append, node_call.batch(b"x"), "me", to_all=True) is elsewhere
    verify = partition.appends.begin_verification
    assert code_of(verify, 3, 0, 2, version_2=False) is elsewhere
    assert code_of(partition.active_producers) is elsewhere
    assert code_of(consume, partition, 0, committed_only=True) is elsewhere
    assert code_of(partition.reader.end_for, True) is elsewhere
    uncommitted = consume(partition, 0)
    assert (uncommitted.size_bytes > 0, uncommitted.last_stable_offset) == (True, -1)
    assert fetch(partition, 2, 2).last_stable_offset == -1
    waiting = Waiter([partition])
    may_load.set()
    assert await waiting.wait(WAIT_MS)
    assert code_of(partition.appends.append, batch(3), "me", to_all=True) is elsewhere, (
        "it follows one that was refused"
    )
    assert partition.appends.append(batch(2), "me", to_all=True).first_offset == 2
    assert partition.appends.append(batch(3), "me", to_all=True).first_offset == 3
    assert consume(partition, 0, committed_only=True).last_stable_offset == 2


async def test_the_last_of_several_truncations_decides_the_producers(
    node_call: Any, partition: Any, may_load: threading.Event, eventually: Any
) -> None:
    for sequence in range(4):
        batch = node_call.batch(b"a", producer_id=3, producer_epoch=0, base_sequence=sequence)
        partition.appends.append(batch, "me", to_all=True)
    partition.update(state(leader=2, epoch=2, at=2), 0)
    for offset in (3, 2, 9):
        partition.truncate_to(offset, 5)
    may_load.set()
    await eventually(lambda: partition.log.loading is None)
    assert partition.log.producers.producers[3].last_sequence == 1
    assert partition.log.snapshots == [2]


async def test_a_truncated_partition_is_deleted_while_its_producers_are_read(
    node_call: Any, partition: Any, may_load: threading.Event, eventually: Any
) -> None:
    for sequence in range(2):
        batch = node_call.batch(b"a", producer_id=3, producer_epoch=0, base_sequence=sequence)
        partition.appends.append(batch, "me", to_all=True)
    partition.update(state(leader=2, epoch=2, at=2), 0)
    partition.truncate_to(1, 5)
    background = node_call.node.log_maintenance._background
    before = len(background)
    removal = node_call.node.store.delete("t", 0)
    partition.closed()
    may_load.set()
    await eventually(lambda: len(background) < before)
    removal.run()
    assert not os.path.exists(partition.log.folder)


async def test_a_truncation_that_the_disk_refuses_half_lowers_the_high_watermark(
    node_call: Any, partition: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition.log.config = replace(partition.log.config, segment_bytes=100)
    for value in (b"a", b"b", b"c"):
        partition.appends.append(node_call.batch(value), "me", to_all=True)
    fetch(partition, 2, 3)
    partition.update(state(leader=2, epoch=2, at=2), 0)

    first_of = partition.log.segments[1].path
    real = os.rename

    def rename(path: str, to: str) -> None:
        if path == first_of:
            raise OSError(errno.ENOSPC, "no space")
        real(path, to)

    with monkeypatch.context() as broken:
        broken.setattr(os, "rename", rename)
        assert code_of(partition.truncate_to, 0, 5) is FULL
    assert (partition.log.end_offset, partition.high_watermark) == (2, 2)
    partition.truncate_to(0, 6)
    assert (partition.log.end_offset, partition.high_watermark) == (0, 0)


async def test_truncated_segments_are_deleted_later(node_call: Any, partition: Any) -> None:
    partition.log.config = replace(partition.log.config, segment_bytes=100)
    for value in (b"a", b"b", b"c"):
        partition.appends.append(node_call.batch(value), "me", to_all=True)
    partition.update(state(leader=2, epoch=2, at=2), 0)

    def files(end: str) -> set[str]:
        return {each for each in os.listdir(partition.log.folder) if each.endswith(end)}

    before = files(".log")
    assert len(before) == 3
    partition.truncate_to(1, 5)
    assert partition.log.end_offset == 1
    assert len(files(".log")) == 2, "the second is empty"
    assert {each.removesuffix(".deleted") for each in files(".log.deleted")} == before - files(
        ".log"
    )
    partition.truncate_fully(40, 6)
    assert files(".log") == {f"{40:020d}.log"}
    assert len(files(".log.deleted")) == 3


async def test_the_low_watermark_waits_for_the_followers(node_call: Any, partition: Any) -> None:
    partition.appends.append(node_call.batch(b"a"), "me", to_all=True)
    for broker in (2, 3):
        fetch(partition, broker, 1)
    assert partition.delete_before(1) == 1
    assert partition.low_watermark == 0
    for broker in (2, 3):
        fetch(partition, broker, 1, start=1)
    assert partition.low_watermark == 1


async def test_no_wait_for_dead_brokers(node_call: Any, partition: Any) -> None:
    """The delta about a dead broker may arrive after the smaller ISR; the next fetch shows it."""
    fetch(partition, 3, 0)
    partition.update(state(isr=(1, 2, 3), at=2), 0)
    partition.appends.append(node_call.batch(b"a"), "me", to_all=True)
    fetch(partition, 2, 1)
    partition.update(state(isr=(1, 2), at=3), 0)
    assert partition.high_watermark == 0
    del node_call.node.image.brokers[3]
    fetch(partition, 2, 1)
    assert partition.high_watermark == 1


async def test_an_idle_follower_counts_as_fetching_until_the_next_append(
    node_call: Any, partition: Any
) -> None:
    read = fetch(partition, 2, 0)
    assert read.at_end
    fetched_ms = partition.leader.followers[2].fetched_ms
    partition.was_idle(2, fetched_ms + 20_000)
    partition.was_idle(3, fetched_ms + 20_000)
    assert partition.leader.followers[2].caught_up_ms == fetched_ms + 20_000
    assert partition.leader.followers[3].caught_up_ms < fetched_ms, "out of sync: it has to show it"
    partition.appends.append(node_call.batch(b"a"), "me", to_all=True)
    assert partition.in_sync_change(fetched_ms + 45_000) is None
    change = partition.in_sync_change(fetched_ms + 50_001)
    assert [broker for broker, _ in change.isr] == [1]


async def test_only_an_in_sync_follower_at_the_high_watermark_is_idle(
    node_call: Any, partition: Any
) -> None:
    assert not fetch(partition, 3, 0).at_end, "it may be proposed at any fetch"
    partition.appends.append(node_call.batch(b"a"), "me", to_all=True)
    assert not fetch(partition, 2, 0).at_end
    assert not fetch(partition, 2, 1).at_end, "broker 3 is about to join and is waited for"
    fetch(partition, 3, 1)
    assert fetch(partition, 2, 1).at_end
    assert consume(partition, 1).at_end
    assert not consume(partition, 0).at_end


async def test_an_earlier_leadership_appends_and_acknowledges_nothing(
    node_call: Any, partition: Any
) -> None:
    """Another broker has led in between: the offset may belong to its record by now."""
    batch, headers = node_call.batch(b"a"), list(iterate_headers(node_call.batch(b"a")))
    appended = partition.appends.append_own(batch, headers, 0, partition.leadership)
    by_leader = appended._replace(to_all=False)
    partition.update(state(leader=2, epoch=2, at=2), 0)
    for led_again in (False, True):
        if led_again:
            partition.update(state(epoch=3, at=3), 0)
            fetch(partition, 2, 1)
            assert partition.high_watermark == 1
        refused = code_of(partition.appends.append_own, batch, headers, 0, appended.leadership)
        assert refused is ErrorCode.not_leader_or_follower
        with pytest.raises(ApiError) as error:
            await partition.acknowledged(appended, 60_000)
        assert error.value.code is ErrorCode.not_leader_or_follower
        partition.log.config = replace(partition.log.config, flush_messages=1)
        with pytest.raises(ApiError) as error:
            await partition.acknowledged(by_leader, 60_000)
        assert error.value.code is ErrorCode.not_leader_or_follower


@pytest.fixture
def failures(partition: Any) -> list[str]:
    """The disk failures that the partition reports."""
    told: list[str] = []
    partition._host = replace(
        partition._host, write_failed=lambda failed, error: told.append(str(error))
    )
    return told


def full(*_: object, **__: object) -> None:
    raise ApiError(FULL, "the disk is full")


def no_space(*_: object) -> int:
    raise OSError(errno.ENOSPC, "the disk is full")


async def test_each_failed_write_is_reported_by_the_partition_itself(
    node_call: Any, partition: Any, failures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, headers = node_call.batch(b"a"), list(iterate_headers(node_call.batch(b"a")))
    with monkeypatch.context() as broken:
        # Compiled code calls `Log.append` in C, so only the system's call can be replaced.
        broken.setattr(os, "pwritev", no_space)
        assert code_of(partition.appends.append, batch, "me", to_all=False) is FULL
        assert (
            code_of(partition.appends.append_own, batch, headers, 0, partition.leadership) is FULL
        )
    assert len(failures) == 2
    appended = partition.appends.append(batch, "me", to_all=False)
    with monkeypatch.context() as broken:
        broken.setattr("ottla.log.flush.FlushTask.run", full)
        with pytest.raises(ApiError):
            await partition.flush()
        partition.log.config = replace(partition.log.config, flush_messages=1)
        with pytest.raises(ApiError):
            await partition.acknowledged(appended, 60_000)
    assert len(failures) == 4
    partition.update(state(leader=2, epoch=2, at=2), 0)
    copied = partition.log.end_offset.to_bytes(8, "big") + batch[8:]
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwritev", no_space)
        broken.setattr("ottla.replica.partition_follower.truncate_to", full)
        broken.setattr("ottla.replica.partition_follower.truncate_fully", full)
        numbers = {"leader_high_watermark": 0, "leader_log_start": 0, "now_ms": 0}
        headers = list(iterate_headers(copied))
        assert code_of(partition.append_fetched, copied, headers, **numbers) is FULL
        assert code_of(partition.truncate_to, 0, 0) is FULL
        assert code_of(partition.truncate_fully, 9, 0) is FULL
    assert [each.rpartition(": ")[2] for each in failures] == ["the disk is full"] * 7


def end_transaction(partition: Any, producer_id: int, epoch: int, **changes: Any) -> Any:
    given = {"is_commit": False, "coordinator_epoch": 4, "transaction_version": 2, **changes}
    return partition.appends.append_marker(producer_id, epoch, **given)


def transact(partition: Any, batch: Any, epoch: int, sequence: int = 0) -> None:
    """One batch of producer 6, verified if need be."""
    guard = partition.appends.begin_verification(6, epoch, sequence, version_2=True)
    built = batch(
        b"a", producer_id=6, producer_epoch=epoch, base_sequence=sequence, is_transactional=True
    )
    partition.appends.append(built, "me", to_all=True, is_transactional=True, guard=guard)


async def test_trap_4_a_marker_sent_again_is_no_error(node_call: Any, partition: Any) -> None:
    transact(partition, node_call.batch, 1)
    first = end_transaction(partition, 6, 2)
    again = end_transaction(partition, 6, 2)
    assert (first.last_offset, again.last_offset) == (1, 2)
    assert partition.log.active.txn_index.overlapping(0, 9)[0] == [(6, 0, 1, 2)]


async def test_a_late_marker_does_not_end_the_next_transaction(
    node_call: Any, partition: Any
) -> None:
    transact(partition, node_call.batch, 1)
    end_transaction(partition, 6, 2)
    transact(partition, node_call.batch, 2)
    assert code_of(end_transaction, partition, 6, 2) is ErrorCode.invalid_producer_epoch
    assert (
        code_of(end_transaction, partition, 6, 3, coordinator_epoch=3)
        is ErrorCode.transaction_coordinator_fenced
    )
    assert partition.log.last_stable_offset(9) == 2
    end_transaction(partition, 6, 3)
    assert partition.log.last_stable_offset(3) == 2, "the marker at 3 is not committed"
    assert partition.log.last_stable_offset(4) == 4


async def test_markers_need_the_in_sync_replicas(node_call: Any, partition: Any) -> None:
    partition.min_insync_replicas = 2
    partition.update(state(isr=(1,), at=9), 0)
    assert code_of(end_transaction, partition, 6, 2) is ErrorCode.not_enough_replicas
    partition.update(state(leader=2, epoch=2, at=10), 0)
    assert code_of(end_transaction, partition, 6, 2) is ErrorCode.not_leader_or_follower
    assert (
        code_of(partition.appends.begin_verification, 6, 2, 0, version_2=True)
        is ErrorCode.not_leader_or_follower
    )
