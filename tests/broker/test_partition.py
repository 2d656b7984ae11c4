import asyncio
import threading
from typing import Any

import pytest

from ottla.broker.waiting import Waiter
from ottla.log.flush import FlushTask
from ottla.log.page_cache import ReadBuffers
from ottla.protocol.errors import ApiError, ErrorCode

WAIT_MS = 60_000


@pytest.fixture
def partition(node_call: Any) -> Any:
    return node_call.node.partitions.find("t", 0)


async def test_an_append_gives_the_next_offsets_and_raises_the_high_watermark(
    node_call: Any, partition: Any
) -> None:
    first = partition.append(node_call.batch(b"a", b"b"), "me", to_all=True)
    assert first == (0, 1, -1, 0, partition.leadership, True)
    assert partition.append(node_call.batch(b"c"), "me", to_all=True).first_offset == 2
    assert partition.high_watermark == 3
    counts = partition.counts
    assert (counts.batches_in, counts.records_in) == (2, 3)
    assert counts.bytes_in == partition.log.size_bytes


async def test_an_append_wakes_who_waits(node_call: Any, partition: Any) -> None:
    waiting = asyncio.create_task(Waiter([partition]).wait(60_000))
    await asyncio.sleep(0)
    partition.append(node_call.batch(b"a"), "me", to_all=True)
    assert await waiting
    assert partition.waiters is None


async def test_a_refused_append_leaves_everything_as_it_was(node_call: Any, partition: Any) -> None:
    for records in (None, b"", b"x" * 100, node_call.batch(b"a")[:-1]):
        with pytest.raises(ApiError):
            partition.append(records, "me", to_all=True)
    assert (partition.high_watermark, partition.counts.batches_in) == (0, 0)


async def test_a_duplicate_is_not_counted(node_call: Any, partition: Any) -> None:
    batch = node_call.batch(b"a", producer_id=3, producer_epoch=0, base_sequence=0)
    assert partition.append(batch, "me", to_all=True).last_offset == 0
    assert partition.append(batch, "me", to_all=True).last_offset == 0
    assert (partition.high_watermark, partition.counts.records_in) == (1, 1)
    assert [each.producer_id for each in partition.active_producers()] == [3]


async def test_reading_stays_within_what_is_there(node_call: Any, partition: Any) -> None:
    partition.append(node_call.batch(b"a", b"b"), "me", to_all=True)
    read = partition.read(1, max_bytes=1 << 20, min_one_batch=True)
    assert (read.high_watermark, read.last_stable_offset, read.log_start_offset) == (2, 2, 0)
    begun = read.begin(ReadBuffers())
    if not isinstance(begun, memoryview):
        begun.finish()
        begun = begun.data
    assert len(begun) == read.size_bytes == partition.log.size_bytes
    assert partition.counts.bytes_out == read.size_bytes
    with pytest.raises(ApiError) as refused:
        partition.read(3, max_bytes=1, min_one_batch=True)
    assert refused.value.code is ErrorCode.offset_out_of_range


async def test_a_reader_from_an_epoch_that_is_not_here_is_told_where_it_parted(
    node_call: Any, partition: Any
) -> None:
    partition.append(node_call.batch(b"a", b"b"), "me", to_all=True)
    read = partition.read(5, max_bytes=1, min_one_batch=True, last_fetched_epoch=0)
    assert (read.diverging_epoch, read.size_bytes) == ((0, 2), 0)
    same = partition.read(2, max_bytes=1, min_one_batch=True, last_fetched_epoch=0)
    assert same.diverging_epoch is None


async def test_leader_epochs_are_checked(partition: Any) -> None:
    partition.leader_epoch = 4
    partition.check_leader_epoch(-1)
    partition.check_leader_epoch(4)
    for epoch, code in (
        (3, ErrorCode.fenced_leader_epoch), (5, ErrorCode.unknown_leader_epoch),
    ):  # fmt: skip
        with pytest.raises(ApiError) as refused:
            partition.check_leader_epoch(epoch)
        assert refused.value.code is code


async def test_one_replica_is_enough_where_there_is_but_one(node_call: Any, partition: Any) -> None:
    """min.insync.replicas counts no more replicas than there are (KIP-966)."""
    partition.min_insync_replicas = 2
    partition.append(node_call.batch(b"a"), "me", to_all=True)


async def test_acknowledged_only_when_it_is_on_the_disk(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """flush.messages=1: one sync stands for all that came before it began."""
    await node_call.create("synced", flush_messages="1")
    partition = node_call.node.partitions.find("synced", 0)
    may_sync, syncs = threading.Event(), []
    run = FlushTask.run

    def slowly(task: FlushTask) -> None:
        syncs.append(task.up_to_offset)
        assert may_sync.wait(30)
        run(task)

    monkeypatch.setattr(FlushTask, "run", slowly)
    waiting = []
    for _ in range(5):
        appended = partition.append(node_call.batch(b"a"), "me", to_all=True)
        waiting.append(asyncio.create_task(partition.acknowledged(appended, WAIT_MS)))
        await asyncio.sleep(0)
    await asyncio.sleep(0.02)
    assert not any(each.done() for each in waiting)
    may_sync.set()
    await asyncio.gather(*waiting)
    assert partition.log.recovery_point == 5
    assert len(syncs) == 2


async def test_an_offset_that_was_synced_and_cut_is_synced_again(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await node_call.create("synced", flush_messages="1")
    partition = node_call.node.partitions.find("synced", 0)
    syncs: list[int] = []
    run = FlushTask.run

    def noted(task: FlushTask) -> None:
        syncs.append(task.up_to_offset)
        run(task)

    monkeypatch.setattr(FlushTask, "run", noted)
    for _ in range(2):
        appended = partition.append(node_call.batch(b"a"), "me", to_all=False)
        await partition.acknowledged(appended, WAIT_MS)
    await node_call.place("synced", (2, 1))
    partition.truncate_to(0, 0)
    await node_call.place("synced", (1, 2))
    appended = partition.append(node_call.batch(b"b"), "me", to_all=False)
    await partition.acknowledged(appended, WAIT_MS)
    assert syncs == [1, 2, 1]


async def test_the_start_moves_up_and_never_down(node_call: Any, partition: Any) -> None:
    for _ in range(5):
        partition.append(node_call.batch(b"a"), "me", to_all=True)
    assert partition.delete_before(3) == 3
    assert partition.delete_before(2) == 3
    for offset in (-2, 6):
        with pytest.raises(ApiError):
            partition.delete_before(offset)
    assert partition.delete_before(-1) == 5


async def test_times_and_epochs_are_found(node_call: Any, partition: Any) -> None:
    partition.append(node_call.batch(b"a", b"b", time_ms=500), "me", to_all=True)
    partition.append(node_call.batch(b"c", time_ms=100), "me", to_all=True)
    found = [search.run() for asked in (501, 502, None) for search in partition.searches(asked)]
    assert [None if each is None else each.offset for each in found] == [1, 1]
    assert partition.epoch_of(1) == 0
    assert partition.end_of_epoch(0) == (0, 3)
    assert partition.end_of_epoch(9) == (-1, -1)


async def test_a_batch_of_a_transaction_is_refused(node_call: Any, partition: Any) -> None:
    batch = node_call.batch(
        b"a", producer_id=3, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    with pytest.raises(ApiError) as refused:
        partition.append(batch, "me", to_all=True)
    assert refused.value.code is ErrorCode.transactional_id_authorization_failed
    assert partition.log.last_stable_offset == partition.high_watermark == 0
