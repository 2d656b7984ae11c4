"""The states of share partitions: Kafka's ShareCoordinatorShard."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any
from uuid import UUID

import pytest
from tests.share.values import ACKED, FREE, KEY

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.share.record_state import RecordState
from ottla.share.settings import ShareCoordinatorSettings
from ottla.share.shard import MAX_AT_ONCE, ShareShard, Step, Summary
from ottla.share.share_partition import StoredState, Write
from ottla.share.state_batch import StateBatch
from ottla.share.stored import ShareKey, ShareRecord, Snapshot, Update

NOW = 1_700_000_000_000


class Bench:
    """A shard whose records are in a log, from which it can be loaded again."""

    def __init__(self, **settings: int) -> None:
        self.settings = ShareCoordinatorSettings(**settings)
        self.log: list[ShareRecord] = []
        self.shard = ShareShard()
        self.now_ms = NOW

    def do(self, decide: Callable[[ShareShard, Step], Any]) -> Any:
        step: Step = Step(self.now_ms, self.settings)
        result = decide(self.shard, step)
        for record in step.records:
            self.log.append(record)
            self.shard.apply(record, len(self.log) - 1, self.now_ms, None)
        return result

    def refused(self, decide: Callable[[ShareShard, Step], Any]) -> ErrorCode:
        with pytest.raises(ApiError) as caught:
            self.do(decide)
        return caught.value.code

    def initialize(self, epoch: int = 1, start: int = 5, key: ShareKey = KEY) -> None:
        self.do(lambda shard, step: shard.initialize(key, epoch, start, True, step))

    def read(self, leader_epoch: int = -1) -> StoredState:
        found: StoredState = self.do(lambda shard, step: shard.read(KEY, leader_epoch, True, step))
        return found

    def write(
        self,
        *batches: StateBatch,
        start: int = 5,
        epoch: int = 1,
        leader: int = -1,
    ) -> None:
        write = Write(start, 2, batches)
        self.do(lambda shard, step: shard.write(KEY, epoch, leader, write, True, step))

    def last(self) -> Any:
        """The value of the last record."""
        return self.log[-1].value

    def reload(self, first: int = 0) -> None:
        self.shard = ShareShard()
        for offset, record in enumerate(self.log[first:], first):
            self.shard.apply(record, offset, self.now_ms, None)


def state(bench: Bench) -> tuple[int, int, Sequence[StateBatch]]:
    found = bench.read()
    return found.state_epoch, found.start_offset, list(found.batches)


def test_a_state_from_its_beginning_to_its_end() -> None:
    bench = Bench()
    assert bench.shard.summary(KEY, True) == Summary(0, 0, -1, -1)
    bench.initialize()
    assert bench.last() == Snapshot(0, 1, -1, 5, 0, NOW, NOW, ())
    assert bench.read(7) == (1, 5, ())
    assert bench.last() == Update(0, 7, 5, 0, [])
    bench.write(ACKED, FREE)
    assert bench.last() == Update(0, 7, 5, 2, [ACKED, FREE])
    bench.write(FREE._replace(first=8, last=8), start=7)
    assert state(bench) == (1, 7, [ACKED._replace(first=7), FREE._replace(first=8)])
    assert bench.shard.summary(KEY, True) == Summary(1, 7, 7, 2)
    before = state(bench)
    bench.reload()
    assert state(bench) == before
    bench.do(lambda shard, step: shard.delete(KEY, True, step))
    assert bench.log[-1].value is None
    bench.do(lambda shard, step: shard.delete(KEY, True, step))
    assert len(bench.log) == 5
    assert bench.shard.summary(KEY, True) == Summary()


def test_a_snapshot_follows_so_many_updates() -> None:
    bench = Bench(updates_per_snapshot=2)
    bench.initialize()
    for offset in range(5, 11):
        batch = StateBatch(offset, offset, RecordState.ACKNOWLEDGED, 1)
        bench.write(batch, start=-1)
    kinds = [type(record.value).__name__ for record in bench.log]
    assert kinds == ["Snapshot", "Update", "Update"] * 2 + ["Snapshot"]
    snapshot = bench.log[3].value
    assert isinstance(snapshot, Snapshot)
    assert (snapshot.snapshot_epoch, snapshot.start_offset) == (1, 5)
    assert list(snapshot.batches) == [StateBatch(5, 7, RecordState.ACKNOWLEDGED, 1)]
    assert bench.shard.redundant_before() == 6
    bench.reload(6)
    assert state(bench) == (1, 5, [StateBatch(5, 10, RecordState.ACKNOWLEDGED, 1)])


def test_old_leaders_and_states_are_fenced() -> None:
    bench = Bench()
    bench.initialize(epoch=2)
    bench.read(7)
    assert bench.refused(lambda shard, step: shard.read(KEY, 6, True, step)) is (
        ErrorCode.fenced_leader_epoch
    )
    write = Write(5, 0, ())
    for epoch, leader, code in (
        (2, 6, ErrorCode.fenced_leader_epoch),
        (1, 7, ErrorCode.fenced_state_epoch),
    ):
        assert (
            bench.refused(lambda shard, step: shard.write(KEY, epoch, leader, write, True, step))  # noqa: B023
            is code
        )
    assert bench.refused(lambda shard, step: shard.initialize(KEY, 1, 0, True, step)) is (
        ErrorCode.fenced_state_epoch
    )
    bench.initialize(epoch=3, start=0)
    assert bench.refused(lambda shard, step: shard.read(KEY, 6, True, step)) is (
        ErrorCode.fenced_leader_epoch
    )
    assert bench.read(7) == (3, 0, ())
    bench.reload()
    assert bench.refused(lambda shard, step: shard.read(KEY, 6, True, step)) is (
        ErrorCode.fenced_leader_epoch
    )


def test_a_leader_writes_only_into_the_state_that_it_has_read() -> None:
    """The group was deleted, and one of its name begun, and its leader does not know."""
    bench = Bench()
    for leader in (0, 7):
        bench.initialize(epoch=2, start=0)
        assert bench.read(leader) == (2, 0, ())
        bench.write(start=16, epoch=2, leader=leader)
        bench.do(lambda shard, step: shard.delete(KEY, True, step))
        bench.initialize(epoch=2, start=0)
        for _ in range(2):
            late = Write(16, 0, ())
            assert (
                bench.refused(lambda shard, step: shard.write(KEY, 2, leader, late, True, step))  # noqa: B023
                is ErrorCode.fenced_state_epoch
            )
            bench.reload()
        assert bench.read(leader) == (2, 0, ())
        bench.reload()
        bench.write(start=1, epoch=2, leader=leader)
        assert state(bench) == (2, 1, [])
        bench.do(lambda shard, step: shard.delete(KEY, True, step))


def test_a_write_of_a_state_whose_epoch_was_higher_is_refused() -> None:
    """It was delayed until a group of that name began, whose state its leader has read."""
    bench = Bench()
    bench.initialize(epoch=2)
    bench.read(7)
    late = Write(16, 0, ())
    for epoch in (1, 3):
        assert (
            bench.refused(lambda shard, step: shard.write(KEY, epoch, 7, late, True, step))  # noqa: B023
            is ErrorCode.fenced_state_epoch
        )
    bench.write(start=6, epoch=2, leader=7)


def test_a_state_that_begins_again_is_read_again() -> None:
    bench = Bench()
    bench.initialize(epoch=2)
    bench.read(7)
    bench.initialize(epoch=3, start=1)
    late = Write(16, 0, ())
    assert bench.refused(lambda shard, step: shard.write(KEY, 3, 7, late, True, step)) is (
        ErrorCode.fenced_state_epoch
    )
    assert bench.read(7) == (3, 1, ())
    bench.reload(first=2)
    bench.write(start=2, epoch=3, leader=7)


def test_a_write_that_was_delayed_does_not_take_the_start_back() -> None:
    bench = Bench()
    bench.initialize()
    bench.write(start=20)
    bench.write(StateBatch(9, 9, RecordState.ACKNOWLEDGED, 1), start=8)
    assert state(bench) == (1, 20, [])
    bench.initialize(epoch=2, start=3)
    assert state(bench) == (2, 3, [])


def test_what_is_not_initialized_or_not_there_is_refused() -> None:
    bench = Bench()
    write = Write(5, 0, ())
    invalid, unknown = ErrorCode.invalid_request, ErrorCode.unknown_topic_or_partition
    negative = KEY._replace(partition=-1)
    assert bench.refused(lambda shard, step: shard.read(KEY, 1, True, step)) is invalid
    assert bench.refused(lambda shard, step: shard.write(KEY, 1, 1, write, True, step)) is invalid
    assert bench.refused(lambda shard, step: shard.delete(negative, True, step)) is invalid
    assert bench.refused(lambda shard, step: shard.summary(negative, True)) is invalid
    assert bench.refused(lambda shard, step: shard.initialize(KEY, 1, 0, False, step)) is unknown
    assert bench.refused(lambda shard, step: shard.delete(KEY, False, step)) is unknown
    assert bench.refused(lambda shard, step: shard.summary(KEY, False)) is unknown
    bench.initialize()
    assert bench.refused(lambda shard, step: shard.read(KEY, 1, False, step)) is unknown
    assert bench.refused(lambda shard, step: shard.write(KEY, 1, 1, write, False, step)) is unknown


def test_states_without_changes_are_written_whole_once() -> None:
    bench = Bench(cold_snapshot_interval_ms=1_000)
    bench.initialize()
    other = KEY._replace(group_id="other")
    bench.do(lambda shard, step: shard.initialize(other, 1, 0, True, step))
    bench.write(ACKED)
    bench.now_ms += 999
    bench.do(lambda shard, step: shard.snapshot_cold(step))
    assert len(bench.log) == 3
    bench.now_ms += 1
    bench.do(lambda shard, step: shard.snapshot_cold(step))
    assert len(bench.log) == 5
    assert bench.shard.redundant_before() == 3
    bench.now_ms += 10_000
    bench.do(lambda shard, step: shard.snapshot_cold(step))
    assert len(bench.log) == 5
    bench.reload(3)
    assert state(bench) == (1, 5, [ACKED])


def test_the_states_of_deleted_topics_go() -> None:
    bench = Bench()
    bench.initialize()
    assert bench.shard.topic_ids() == [KEY.topic_id]
    bench.do(lambda shard, step: shard.topics_deleted([KEY.topic_id], step))
    assert bench.shard.topic_ids() == []
    assert bench.shard.redundant_before() == len(bench.log)


def test_many_states_are_written_and_deleted_in_parts() -> None:
    bench = Bench(cold_snapshot_interval_ms=1_000)
    count = MAX_AT_ONCE + 10
    for partition in range(count):
        bench.initialize(key=KEY._replace(partition=partition))
    bench.now_ms += 1_000
    cold = []
    for _ in range(2):
        cold.append(bench.do(lambda shard, step: shard.snapshot_cold(step)))
        assert len(bench.log) <= count + MAX_AT_ONCE * len(cold)
    # The last one that was made has no newer change before it.
    assert (cold, len(bench.log)) == ([True, False], 2 * count - 1)
    gone = []
    for _ in range(2):
        gone.append(bench.do(lambda shard, step: shard.topics_deleted([KEY.topic_id], step)))
    assert (gone, len(bench.shard.known)) == ([True, False], 0)


@pytest.mark.parametrize("seed", range(5))
def test_the_oldest_snapshot_and_the_states_of_each_topic(seed: int) -> None:
    random, bench = Random(seed), Bench(updates_per_snapshot=2, cold_snapshot_interval_ms=50)
    topic_ids = [UUID(int=each) for each in (1, 2, 3)]
    keys = [ShareKey("g", each, partition) for each in topic_ids for partition in range(3)]
    for number in range(400):
        bench.now_ms += random.choice((0, 1, 30, -20))
        key, write = random.choice(keys), Write(number, 0, ())
        match random.choice(("write",) * 8 + ("begin", "delete", "cold", "gone")):
            case "write" if key in bench.shard.known:
                bench.do(lambda shard, step: shard.write(key, 0, -1, write, True, step))  # noqa: B023
            case "write" | "begin":
                bench.initialize(0, key=key)
            case "delete":
                bench.do(lambda shard, step: shard.delete(key, True, step))  # noqa: B023
            case "cold":
                bench.do(lambda shard, step: shard.snapshot_cold(step))
            case "gone":
                bench.do(lambda shard, step: shard.topics_deleted([key.topic_id], step))  # noqa: B023
        shard = bench.shard
        offsets = [known.offset for known in shard.known.values()]
        assert offsets == sorted(offsets)
        assert shard.redundant_before() == min(offsets, default=len(bench.log))
        assert {*shard.topic_ids()} == {key.topic_id for key in shard.known}
        assert {key for each in topic_ids for key in shard.of_topic(each)} == {*shard.known}
    before = shard.known.keys(), shard.redundant_before()
    bench.reload(shard.redundant_before())
    assert (bench.shard.known.keys(), bench.shard.redundant_before()) == before


def test_a_state_from_a_time_that_is_to_come_hides_no_older_one() -> None:
    """The wall clock was ahead, and is right again."""
    bench = Bench(cold_snapshot_interval_ms=1_000)
    other = KEY._replace(group_id="other")
    bench.now_ms += 1_000_000
    bench.initialize()
    bench.now_ms -= 1_000_000
    bench.initialize(key=other)
    bench.write(ACKED)
    bench.now_ms += 1_000
    bench.do(lambda shard, step: shard.snapshot_cold(step))
    assert [record.key for record in bench.log[3:]] == [other]
