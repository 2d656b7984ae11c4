"""A partition of three replicas, as its leader and as a follower, without the other brokers."""

import asyncio
import os
from dataclasses import replace
from typing import Any

import pytest

from ottla.broker.partition import Role
from ottla.controller.image import BrokerImage, PartitionState
from ottla.log.leader_epochs import LeaderEpochs
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.header import iterate_headers
from ottla.replication.leader import Follower

FULL = ErrorCode.kafka_storage_error


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
    follower = Follower(broker, -1, changes.pop("start", 0))
    return partition.read(
        offset, max_bytes=1 << 20, min_one_batch=True, follower=follower, **changes
    )


def consume(partition: Any, offset: int, **changes: Any) -> Any:
    return partition.read(offset, max_bytes=1 << 20, min_one_batch=True, **changes)


def code_of(call: Any, *arguments: Any, **named: Any) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        call(*arguments, **named)
    return refused.value.code


async def test_only_what_the_in_sync_hold_is_committed_and_read(
    node_call: Any, partition: Any
) -> None:
    partition.append(node_call.batch(b"a", b"b"), "me", to_all=True)
    assert (partition.high_watermark, partition.last_stable_offset) == (0, 0)
    assert consume(partition, 0).size_bytes == 0
    assert fetch(partition, 2, 0).size_bytes > 0
    assert fetch(partition, 2, 2).high_watermark == 2
    assert consume(partition, 0).size_bytes > 0


async def test_a_producer_waits_for_the_high_watermark(node_call: Any, partition: Any) -> None:
    by_leader = partition.append(node_call.batch(b"a"), "me", to_all=False)
    await partition.acknowledged(by_leader, 0)
    appended = by_leader._replace(to_all=True)
    waiting = asyncio.create_task(partition.acknowledged(appended, 60_000))
    await asyncio.sleep(0)
    assert not waiting.done()
    fetch(partition, 2, 1)
    await waiting
    await partition.acknowledged(appended, 0)


async def test_who_waits_is_told_when_another_leads(node_call: Any, partition: Any) -> None:
    appended = partition.append(node_call.batch(b"a"), "me", to_all=True)
    waiting = asyncio.create_task(partition.acknowledged(appended, 60_000))
    await asyncio.sleep(0)
    assert partition.update(state(leader=2, epoch=2, at=2), 0) is Role.FOLLOWER
    with pytest.raises(ApiError) as refused:
        await waiting
    assert refused.value.code is ErrorCode.not_leader_or_follower
    assert code_of(partition.append, node_call.batch(b"a"), "me", to_all=True) is refused.value.code


async def test_too_few_in_sync_before_and_after_the_append(node_call: Any, partition: Any) -> None:
    partition.min_insync_replicas = 2
    appended = partition.append(node_call.batch(b"a"), "me", to_all=True)
    fetch(partition, 2, 1)
    partition.update(state(isr=(1,), at=2), 0)
    batch = node_call.batch(b"b")
    code = code_of(partition.append, batch, "me", to_all=True)
    assert code is ErrorCode.not_enough_replicas
    own = code_of(
        partition.append_own, batch, list(iterate_headers(batch)), 0, partition.leadership
    )
    assert own is ErrorCode.not_enough_replicas
    assert partition.log.end_offset == 1
    partition.append(batch, "me", to_all=False)
    with pytest.raises(ApiError) as refused:
        await partition.acknowledged(appended, 1000)
    assert refused.value.code is ErrorCode.not_enough_replicas_after_append


async def test_who_waits_is_told_of_a_set_that_shrank_before_the_answer(
    node_call: Any, partition: Any
) -> None:
    partition.min_insync_replicas = 2
    appended = partition.append(node_call.batch(b"a"), "me", to_all=True)
    waiting = asyncio.create_task(partition.acknowledged(appended, 60_000))
    await asyncio.sleep(0)
    fetch(partition, 2, 1)  # committed, and in the same turn of the loop:
    partition.update(state(isr=(1,), at=2), 0)
    with pytest.raises(ApiError) as refused:
        await waiting
    assert refused.value.code is ErrorCode.not_enough_replicas_after_append


async def test_a_set_that_shrank_below_the_minimum_commits_nothing(
    node_call: Any, partition: Any
) -> None:
    partition.min_insync_replicas = 2
    appended = partition.append(node_call.batch(b"a"), "me", to_all=True)
    partition.update(state(isr=(1,), at=2), 0)
    assert partition.high_watermark == 0
    with pytest.raises(ApiError) as refused:
        await partition.acknowledged(appended, 1)
    assert refused.value.code is ErrorCode.request_timed_out


async def test_a_disk_that_takes_no_epoch_takes_no_record(
    node_call: Any, partition: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition.append(node_call.batch(b"a"), "me", to_all=True)
    fetch(partition, 2, 1)
    partition.update(state(leader=2, epoch=2, at=2), 0)

    def full(epochs: LeaderEpochs) -> None:
        raise ApiError(ErrorCode.kafka_storage_error, "the disk is full")

    monkeypatch.setattr(LeaderEpochs, "store", full)
    # Nothing is written of an epoch before its first record.
    assert partition.update(state(epoch=3, isr=(1,), at=3), 0) is Role.LEADER
    assert consume(partition, 0).size_bytes > 0
    assert code_of(partition.append, node_call.batch(b"b"), "me", to_all=True) is FULL
    assert partition.log.epochs.end_of(1, partition.log.end_offset) == (1, 1)
    monkeypatch.undo()
    assert partition.append(node_call.batch(b"b"), "me", to_all=True).last_offset == 1
    assert partition.log.epochs.entries[-1] == (3, 1)


async def test_older_deltas_are_passed_over(partition: Any) -> None:
    assert partition.update(state(leader=2, epoch=0, at=9), 0) is Role.LEADER
    assert partition.update(state(isr=(1,), at=0), 0) is Role.LEADER
    assert partition.state == state()
    assert partition.update(state(leader=-1, epoch=2, at=2), 0) is Role.NONE
    assert code_of(consume, partition, 0, leader_only=False) is ErrorCode.not_leader_or_follower


async def test_a_stranger_is_no_replica(partition: Any) -> None:
    assert code_of(fetch, partition, 9, 0) is ErrorCode.not_leader_or_follower
    unknown = code_of(fetch, partition, 9, 0, leader_epoch=1)
    assert unknown is ErrorCode.unknown_leader_epoch


async def test_one_that_has_caught_up_is_proposed(node_call: Any, partition: Any) -> None:
    partition.append(node_call.batch(b"a"), "me", to_all=True)
    fetch(partition, 2, 1)
    assert partition.in_sync_change(0) is None
    proposed: list[Any] = []
    node_call.node.in_sync_care._propose = lambda _, change: proposed.append(change)
    fetch(partition, 3, 1)
    (change,) = proposed
    assert [broker for broker, _ in change.isr] == [1, 2, 3]
    partition.in_sync_answered(ErrorCode.none, state(isr=(1, 2, 3), at=2))
    assert partition.state.isr == (1, 2, 3)


async def test_latest_is_not_told_before_the_epoch_is_reached(
    node_call: Any, partition: Any
) -> None:
    partition.append(node_call.batch(b"a"), "me", to_all=True)
    partition.update(state(leader=2, epoch=2, at=2), 0)
    partition.update(state(epoch=3, at=3), 0)
    high = partition.high_watermark
    assert code_of(partition.check_latest_known, high) is ErrorCode.offset_not_available
    fetch(partition, 2, 1)
    partition.check_latest_known(partition.high_watermark)


async def test_a_reader_with_an_epoch_unknown_here_is_out_of_range(partition: Any) -> None:
    code = code_of(consume, partition, 0, last_fetched_epoch=7)
    assert code is ErrorCode.offset_out_of_range


async def test_a_follower_copies_cuts_and_serves_what_is_committed(
    node_call: Any, partition: Any
) -> None:
    partition.append(node_call.batch(b"a"), "me", to_all=True)
    partition.append(node_call.batch(b"b"), "me", to_all=True)
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


async def test_segments_that_a_cut_drops_are_removed_later(node_call: Any, partition: Any) -> None:
    partition.log.config = replace(partition.log.config, segment_bytes=100)
    for value in (b"a", b"b", b"c"):
        partition.append(node_call.batch(value), "me", to_all=True)
    partition.update(state(leader=2, epoch=2, at=2), 0)

    def files(end: str) -> set[str]:
        return {each for each in os.listdir(partition.log.folder) if each.endswith(end)}

    before = files(".log")
    assert len(before) == 3
    partition.truncate_to(1, 5)
    assert partition.log.end_offset == 1
    assert len(files(".log")) == 1
    assert {each.removesuffix(".deleted") for each in files(".log.deleted")} == before - files(
        ".log"
    )
    partition.truncate_fully(40, 6)
    assert files(".log") == {f"{40:020d}.log"}
    assert len(files(".log.deleted")) == 3


async def test_the_low_watermark_waits_for_the_followers(node_call: Any, partition: Any) -> None:
    partition.append(node_call.batch(b"a"), "me", to_all=True)
    for broker in (2, 3):
        fetch(partition, broker, 1)
    assert partition.delete_before(1) == 1
    assert partition.low_watermark == 0
    for broker in (2, 3):
        fetch(partition, broker, 1, start=1)
    assert partition.low_watermark == 1


async def test_the_dead_are_not_waited_for(node_call: Any, partition: Any) -> None:
    """The delta about a dead broker may follow the smaller in-sync set; the next fetch shows it."""
    fetch(partition, 3, 0)
    partition.update(state(isr=(1, 2, 3), at=2), 0)
    partition.append(node_call.batch(b"a"), "me", to_all=True)
    fetch(partition, 2, 1)
    partition.update(state(isr=(1, 2), at=3), 0)
    assert partition.high_watermark == 0
    del node_call.node.image.brokers[3]
    fetch(partition, 2, 1)
    assert partition.high_watermark == 1


async def test_a_follower_that_rested_has_fetched_until_the_next_append(
    node_call: Any, partition: Any
) -> None:
    read = fetch(partition, 2, 0)
    assert read.rests
    fetched_ms = partition.leader.followers[2].fetched_ms
    partition.was_idle(2, fetched_ms + 20_000)
    partition.was_idle(3, fetched_ms + 20_000)
    assert partition.leader.followers[2].caught_up_ms == fetched_ms + 20_000
    assert partition.leader.followers[3].caught_up_ms < fetched_ms, "out of sync: it has to show it"
    partition.append(node_call.batch(b"a"), "me", to_all=True)
    assert partition.in_sync_change(fetched_ms + 45_000) is None
    change = partition.in_sync_change(fetched_ms + 50_001)
    assert [broker for broker, _ in change.isr] == [1]


async def test_only_who_is_in_sync_at_the_high_watermark_rests(
    node_call: Any, partition: Any
) -> None:
    assert not fetch(partition, 3, 0).rests, "it may be proposed at any fetch"
    partition.append(node_call.batch(b"a"), "me", to_all=True)
    assert not fetch(partition, 2, 0).rests
    assert not fetch(partition, 2, 1).rests, "broker 3 is about to join and is waited for"
    fetch(partition, 3, 1)
    assert fetch(partition, 2, 1).rests
    assert consume(partition, 1).rests
    assert not consume(partition, 0).rests


async def test_an_earlier_leadership_appends_and_acknowledges_nothing(
    node_call: Any, partition: Any
) -> None:
    """Another broker led meanwhile: the offset may have its record by now."""
    batch, headers = node_call.batch(b"a"), list(iterate_headers(node_call.batch(b"a")))
    appended = partition.append_own(batch, headers, 0, partition.leadership)
    by_leader = appended._replace(to_all=False)
    partition.update(state(leader=2, epoch=2, at=2), 0)
    for led_again in (False, True):
        if led_again:
            partition.update(state(epoch=3, at=3), 0)
            fetch(partition, 2, 1)
            assert partition.high_watermark == 1
        refused = code_of(partition.append_own, batch, headers, 0, appended.leadership)
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
    """What the partition reports of its disk."""
    told: list[str] = []
    partition._write_failed = lambda failed, error: told.append(str(error))
    return told


def full(*_: object, **__: object) -> None:
    raise ApiError(FULL, "the disk is full")


async def test_each_failed_write_is_reported_by_the_partition_itself(
    node_call: Any, partition: Any, failures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, headers = node_call.batch(b"a"), list(iterate_headers(node_call.batch(b"a")))
    with monkeypatch.context() as broken:
        broken.setattr("ottla.log.log.Log.append", full)
        assert code_of(partition.append, batch, "me", to_all=False) is FULL
        assert code_of(partition.append_own, batch, headers, 0, partition.leadership) is FULL
    assert len(failures) == 2
    appended = partition.append(batch, "me", to_all=False)
    with monkeypatch.context() as broken:
        broken.setattr("ottla.log.flush.FlushTask.run", full)
        with pytest.raises(ApiError):
            await partition.flush()
        partition.log.config = replace(partition.log.config, flush_messages=1)
        with pytest.raises(ApiError):
            await partition.acknowledged(appended, 60_000)
    assert len(failures) == 4
    partition.update(state(leader=2, epoch=2, at=2), 0)
    with monkeypatch.context() as broken:
        broken.setattr("ottla.log.log.Log.append_as_follower", full)
        broken.setattr("ottla.broker.partition_follow.truncate_to", full)
        broken.setattr("ottla.broker.partition_follow.truncate_fully", full)
        numbers = {"leader_high_watermark": 0, "leader_log_start": 0, "now_ms": 0}
        assert code_of(partition.append_fetched, batch, headers, **numbers) is FULL
        assert code_of(partition.truncate_to, 0, 0) is FULL
        assert code_of(partition.truncate_fully, 9, 0) is FULL
    assert failures == ["the disk is full"] * 7
