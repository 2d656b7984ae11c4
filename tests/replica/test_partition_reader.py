"""Reads from a log on disk, without a broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.controller.image import PartitionState
from ottla.log.log import Log
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.partition_reader import (
    NO_REPLICA,
    PartitionReader,
    Read,
    rack_aware_replica,
    refused_read,
)
from ottla.replica.partition_role import PartitionRole
from ottla.replication.leader import FetchingReplica


@pytest.fixture
def reader(log: Log, role: PartitionRole) -> PartitionReader:
    return PartitionReader(log, role)


def read(reader: PartitionReader, offset: int, **changes: Any) -> Read:
    return reader.read(offset, max_bytes=1 << 20, min_one_batch=True, **changes)


def code_of(call: Any, *arguments: Any, **named: Any) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        call(*arguments, **named)
    return refused.value.code


def three_replicas(role: PartitionRole, leader: int, epoch: int) -> None:
    assert role.update(PartitionState(leader, epoch, (1, 2, 3), (1, 2), epoch))


def test_a_read_stays_within_the_log(
    reader: PartitionReader, log: Log, write: Callable[..., bytes]
) -> None:
    write(b"a", b"b")
    found = read(reader, 1)
    assert (found.high_watermark, found.last_stable_offset, found.log_start_offset) == (2, 2, 0)
    assert len(found.range.read()) == found.size_bytes == log.size_bytes
    assert not found.at_end
    assert read(reader, 2).at_end
    assert code_of(read, reader, 3) is ErrorCode.offset_out_of_range


def test_a_consumer_reads_committed_records_and_a_replica_all(
    reader: PartitionReader, role: PartitionRole, write: Callable[..., bytes]
) -> None:
    write(b"a")
    three_replicas(role, leader=1, epoch=1)
    write(b"b", leader_epoch=1)
    assert (read(reader, 0).high_watermark, read(reader, 1).size_bytes) == (1, 0)
    assert read(reader, 1).at_end
    assert not read(reader, 1, to_log_end=True).at_end
    assert read(reader, 1, to_log_end=True).size_bytes > 0
    assert read(reader, 2, to_log_end=True).at_end


def test_a_follower_serves_consumers_that_fetch_from_it(
    reader: PartitionReader, role: PartitionRole, write: Callable[..., bytes]
) -> None:
    write(b"a")
    three_replicas(role, leader=2, epoch=1)
    assert code_of(read, reader, 0) is ErrorCode.not_leader_or_follower
    assert read(reader, 0, leader_only=False).size_bytes > 0
    three_replicas(role, leader=-1, epoch=2)
    assert code_of(read, reader, 0, leader_only=False) is ErrorCode.not_leader_or_follower


def test_another_leader_epoch_is_refused(reader: PartitionReader, role: PartitionRole) -> None:
    three_replicas(role, leader=1, epoch=4)
    assert read(reader, 0, leader_epoch=4).size_bytes == 0
    assert code_of(read, reader, 0, leader_epoch=3) is ErrorCode.fenced_leader_epoch
    assert code_of(read, reader, 0, leader_epoch=5) is ErrorCode.unknown_leader_epoch


def test_a_diverged_reader_learns_where(
    reader: PartitionReader, write: Callable[..., bytes]
) -> None:
    write(b"a", b"b")
    found = read(reader, 5, last_fetched_epoch=0)
    assert (found.diverging_epoch, found.size_bytes, found.at_end) == ((0, 2), 0, False)
    assert read(reader, 2, last_fetched_epoch=0).diverging_epoch is None
    assert code_of(read, reader, 0, last_fetched_epoch=7) is ErrorCode.offset_out_of_range


def test_times_and_epochs_are_found(reader: PartitionReader, write: Callable[..., bytes]) -> None:
    write(b"a", b"b", time_ms=500)
    write(b"c", time_ms=100)
    found = [search.run() for asked in (501, 502, None) for search in reader.searches(asked)]
    assert [None if each is None else each.offset for each in found] == [1, 1]
    assert reader.epoch_of(1) == 0
    assert reader.end_of_epoch(0) == (0, 3)
    assert reader.end_of_epoch(9) == (-1, -1)


def test_the_latest_offset_is_unknown_before_the_epoch_is_reached(
    reader: PartitionReader, role: PartitionRole, write: Callable[..., bytes]
) -> None:
    write(b"a", b"b")
    reader.check_latest_known()
    three_replicas(role, leader=2, epoch=1)
    assert code_of(reader.check_latest_known) is ErrorCode.not_leader_or_follower
    three_replicas(role, leader=1, epoch=2)
    reader.check_latest_known()
    write(b"c", leader_epoch=2)
    reader.check_latest_known()  # that record is this leader's own
    three_replicas(role, leader=2, epoch=3)
    three_replicas(role, leader=1, epoch=4)
    assert code_of(reader.check_latest_known) is ErrorCode.offset_not_available
    role.leading().fetched(FetchingReplica(2), 3, 0, end_offset=3, now_ms=0)
    assert role.advance()
    reader.check_latest_known()


def test_a_consumer_prefers_the_replica_in_its_rack_with_the_most_records(
    role: PartitionRole,
) -> None:
    assert role.update(PartitionState(1, 1, (1, 2, 3, 4), (1, 2, 3, 4), 1))
    leader = role.leading()
    for broker, offset in ((2, 5), (3, 7), (4, 9)):
        leader.fetched(FetchingReplica(broker), offset, 0, end_offset=9, now_ms=0)
    racks = {1: "a", 2: "b", 3: "b", 4: "c"}
    assert rack_aware_replica(leader, "b", racks, 5) == 3
    assert rack_aware_replica(leader, "b", racks, 8) == NO_REPLICA, "neither has it"
    assert rack_aware_replica(leader, "a", racks, 5) == NO_REPLICA
    assert rack_aware_replica(leader, "", racks, 5) == NO_REPLICA


def test_a_refusal_has_no_offsets() -> None:
    refused = refused_read(ErrorCode.unknown_topic_id)
    assert refused[1:6] == (-1, -1, -1, False, ErrorCode.unknown_topic_id)
    assert refused.size_bytes == 0
