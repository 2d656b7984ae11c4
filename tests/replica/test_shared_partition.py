"""A shared partition with a share coordinator that may be slow, refuse, or be replaced."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ottla.config.offset_reset import OffsetReset
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.share_history import ShareHistory
from ottla.replica.shared_partition import GroupTerms, SharedPartition, Surroundings
from ottla.runtime.background import Background
from ottla.share.acquisition import AcquireMode, LogBatch, Wish
from ottla.share.record_state import Cause, RecordState
from ottla.share.shard import Summary
from ottla.share.share_partition import AckBatch, Letter, ShareSettings, StoredState, Write
from ottla.share.state_batch import StateBatch
from ottla.share.stored import ShareKey

KEY = ShareKey("g", UUID(int=7), 0)


class Letters:
    """Writes dead letters, as far as they are wanted."""

    def __init__(self) -> None:
        self.got: list[Letter] = []
        self.written = self.given_up = 0
        self.given_up_from: int | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def write(
        self,
        partition: Any,
        group_id: str,
        letters: Sequence[Letter],
        is_wanted: Callable[[], bool],
    ) -> int | None:
        assert group_id == KEY.group_id
        self.got += letters
        await self.gate.wait()
        return self.given_up_from


class Bench:
    """The coordinator, and all else around the partition."""

    def __init__(self, partition: Any) -> None:
        self.partition = partition
        self.state = StoredState(1, 0, [])
        self.read_error: ErrorCode | None = None
        self.write_errors: list[ErrorCode] = []
        self.writes: list[Write] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.time_ms = 0
        self.background = Background(logging.getLogger("tests"), "sharing")
        self.terms = GroupTerms(ShareSettings(), False, OffsetReset("earliest"))
        self.shared: SharedPartition
        self.letters = Letters()
        self.history = ShareHistory()

    def monotonic_ms(self) -> int:
        return self.time_ms

    def now_ms(self) -> int:
        return 1_000_000 + self.time_ms

    async def read(self, key: ShareKey, leader_epoch: int) -> StoredState:
        if self.read_error is not None:
            raise ApiError(self.read_error)
        return self.state

    async def write(self, key: ShareKey, state_epoch: int, leader_epoch: int, write: Write) -> None:
        assert (state_epoch, leader_epoch) == (1, self.partition.leader_epoch)
        await self.gate.wait()
        self.writes.append(write)
        if self.write_errors:
            raise ApiError(self.write_errors.pop(0))

    async def summary(self, key: ShareKey) -> Summary:
        raise AssertionError("nothing waits so long here")

    async def first_offset(self, partition: Any, reset: OffsetReset) -> int:
        return 2

    async def load(self) -> SharedPartition:
        around: Any = Surroundings(
            self,
            self,
            SimpleNamespace(),  # type: ignore[arg-type]
            self.background,
            lambda group: self.terms,
            self.first_offset,
            self.letters,
            self.history,
        )
        self.shared = SharedPartition(KEY, self.partition, around)
        while self.shared.is_loading:
            await asyncio.sleep(0)
        return self.shared

    def own(self, first: int = 0, last: int = 9) -> None:
        """Member "m" has these records."""
        shares = self.shared._shares
        assert shares is not None
        wish = Wish("m", AcquireMode.BATCH_OPTIMIZED, 500, 500)
        shares.acquire(wish, first, [LogBatch(first, last)], self.terms.records, self.time_ms)
        self.shared._arm(self.terms.records.lock_ms)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    partition = SimpleNamespace(
        topic="t",
        index=0,
        leadership=1,
        leader_epoch=3,
        log=SimpleNamespace(start_offset=0),
        waiters=None,
    )
    made = Bench(partition)
    yield made
    made.background.cancel()


def accept(first: int, last: int) -> list[AckBatch]:
    return [AckBatch(first, last, [1])]


async def test_what_is_said_during_a_write_goes_out_together(bench: Bench) -> None:
    shared = await bench.load()
    bench.own()
    bench.gate.clear()
    said = [shared.acknowledge("m", accept(0, 1))]
    await asyncio.sleep(0)
    said += [shared.acknowledge("m", accept(2, 3)), shared.acknowledge("m", accept(5, 5))]
    await asyncio.sleep(0.01)
    assert not any(each is None or each.done() for each in said)
    bench.gate.set()
    await asyncio.gather(*(each for each in said if each is not None))
    acked = RecordState.ACKNOWLEDGED
    assert [list(write.batches) for write in bench.writes] == [
        [StateBatch(0, 1, acked, 1)],
        [StateBatch(2, 3, acked, 1), StateBatch(5, 5, acked, 1)],
    ]
    assert [write.start_offset for write in bench.writes] == [0, 2]


@pytest.mark.parametrize(
    ("refusal", "code", "is_gone"),
    [
        (ErrorCode.not_coordinator, ErrorCode.coordinator_not_available, False),
        (ErrorCode.network_exception, ErrorCode.unknown_server_error, False),
        (ErrorCode.fenced_leader_epoch, ErrorCode.not_leader_or_follower, True),
        (ErrorCode.fenced_state_epoch, ErrorCode.not_leader_or_follower, True),
        (ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_or_partition, True),
        (ErrorCode.invalid_request, ErrorCode.unknown_server_error, True),
    ],
)
async def test_a_write_that_is_refused(
    bench: Bench, refusal: ErrorCode, code: ErrorCode, is_gone: bool
) -> None:
    shared = await bench.load()
    bench.own()
    bench.write_errors = [refusal]
    said = shared.acknowledge("m", accept(0, 9))
    assert said is not None
    with pytest.raises(ApiError) as caught:
        await said
    assert caught.value.code is code
    assert shared.is_gone is is_gone
    if not is_gone:
        said = shared.acknowledge("m", accept(0, 9))
        assert said is not None
        await said
        assert shared.is_idle


async def test_a_state_that_cannot_be_read(bench: Bench) -> None:
    bench.read_error = ErrorCode.fenced_leader_epoch
    shared = await bench.load()
    assert shared.failure is not None
    assert shared.failure.code is ErrorCode.not_leader_or_follower
    assert not shared.is_current
    bench.read_error, bench.state = (
        None,
        StoredState(1, 5, [StateBatch(3, 4, RecordState.AVAILABLE, 1)]),
    )
    shared = await bench.load()
    assert shared.failure is not None
    assert shared.failure.code is ErrorCode.unknown_server_error


async def test_a_group_without_an_offset_chooses_one(bench: Bench) -> None:
    bench.state = StoredState(1, -1, [])
    bench.write_errors = [ErrorCode.network_exception]
    shared = await bench.load()
    assert shared.progress == (2, 2)
    await asyncio.sleep(0.01)
    assert [write.start_offset for write in bench.writes] == [2]
    assert not shared.is_idle
    bench.own(2, 9)
    said = shared.acknowledge("m", accept(2, 2))
    assert said is not None
    await said
    assert [write.start_offset for write in bench.writes] == [2, 2]
    assert shared.acknowledge("m", [AckBatch(3, 9, [4])]) is None


async def test_locks_end_and_are_written(bench: Bench, eventually: Callable[..., Any]) -> None:
    bench.terms = bench.terms._replace(records=ShareSettings(lock_ms=20))
    shared = await bench.load()
    bench.own()
    bench.time_ms = 20
    await eventually(lambda: bench.writes)
    assert list(bench.writes[0].batches) == [StateBatch(0, 9, RecordState.AVAILABLE, 1)]
    assert shared.progress == (0, 0)


async def test_a_release_that_is_not_written_is_written_later(bench: Bench) -> None:
    shared = await bench.load()
    bench.own()
    bench.write_errors = [ErrorCode.network_exception]
    shared.release("m")
    await asyncio.sleep(0.01)
    assert len(bench.writes) == 1
    assert not shared.is_idle
    shared.release("m")  # it has nothing any more
    await asyncio.sleep(0.01)
    assert len(bench.writes) == 1
    bench.own()
    said = shared.acknowledge("m", accept(0, 0))
    assert said is not None
    await said
    assert bench.writes[1].batches[0] == StateBatch(0, 0, RecordState.ACKNOWLEDGED, 2)


async def test_another_leader_ends_it(bench: Bench) -> None:
    shared = await bench.load()
    bench.own()
    bench.gate.clear()
    said = shared.acknowledge("m", accept(0, 1))
    waiting = shared.acknowledge("m", accept(2, 3))
    assert said is not None
    assert waiting is not None
    bench.partition.leadership = 2
    with pytest.raises(ApiError) as caught:
        shared.acknowledge("m", accept(4, 4))
    assert caught.value.code is ErrorCode.not_leader_or_follower
    assert not shared.may_hand_out
    shared.end()
    for each in (said, waiting):
        with pytest.raises(ApiError):
            await each


async def test_a_timer_that_is_always_late_ends_locks_all_the_same(bench: Bench) -> None:
    shared = await bench.load()
    bench.own()
    loop = asyncio.get_running_loop()

    def fire_late() -> None:
        assert shared._timer is not None
        shared._timer.cancel()
        shared._timer_due = loop.time() - 1
        shared._expire()

    bench.time_ms += 31_000
    fire_late()
    assert shared._shares is not None
    assert shared._shares.next_lock_end_ms() == 30_000, "what members sent is heard first"
    shared._arm(1)
    assert shared._timer_due - loop.time() > 0.1
    fire_late()
    assert shared._shares.next_lock_end_ms() is None
    # Another lock: members get the time once more.
    bench.own()
    bench.time_ms += 31_000
    fire_late()
    assert shared._shares.next_lock_end_ms() is not None


def dead_lettered(bench: Bench) -> None:
    records = ShareSettings(has_dead_letters=True)
    bench.terms = bench.terms._replace(records=records, dead_letters="dlq.t")


async def test_a_rejected_record_is_archived_once_its_dead_letter_is_written(
    bench: Bench, eventually: Callable[..., Any]
) -> None:
    dead_lettered(bench)
    shared = await bench.load()
    bench.own()
    bench.letters.gate.clear()
    bench.gate.clear()
    said = shared.acknowledge("m", [AckBatch(0, 3, [3]), AckBatch(4, 9, [1])])
    assert said is not None
    await asyncio.sleep(0.01)
    assert bench.letters.got == []  # not before the state is stored
    bench.gate.set()
    await said
    await eventually(lambda: bench.letters.got)
    assert bench.letters.got == [Letter(0, 3, 1, Cause.REJECTED)]
    assert shared.progress == (0, 10)
    assert not shared.is_idle
    bench.letters.gate.set()
    await eventually(lambda: shared.is_idle)
    assert [list(write.batches) for write in bench.writes] == [
        [StateBatch(0, 3, RecordState.ARCHIVING, 1), StateBatch(4, 9, RecordState.ACKNOWLEDGED, 1)],
        [StateBatch(0, 3, RecordState.ARCHIVED, 1)],
    ]
    assert [write.delivery_complete_count for write in bench.writes] == [6, 10]
    assert shared.progress == (10, 10)


async def test_a_new_leader_goes_on_with_dead_letters(
    bench: Bench, eventually: Callable[..., Any]
) -> None:
    """Also if the group has none any more: the writer gives them up."""
    archiving = RecordState.ARCHIVING
    bench.state = StoredState(
        1, 0, [StateBatch(0, 1, archiving, 2), StateBatch(2, 2, archiving, 5)]
    )
    shared = await bench.load()
    await eventually(lambda: shared.is_idle)
    assert bench.letters.got == [
        Letter(0, 1, 2, Cause.REJECTED),
        Letter(2, 2, 5, Cause.DELIVERED_TOO_OFTEN),
    ]
    assert shared.progress == (3, 3)


async def test_a_deposed_leader_does_not_archive(
    bench: Bench, eventually: Callable[..., Any]
) -> None:
    dead_lettered(bench)
    shared = await bench.load()
    bench.own()
    bench.letters.gate.clear()
    said = shared.acknowledge("m", [AckBatch(0, 9, [3])])
    assert said is not None
    await said
    await eventually(lambda: bench.letters.got)
    bench.partition.leadership = 2
    bench.letters.gate.set()
    await asyncio.sleep(0.01)
    assert len(bench.writes) == 1


async def test_what_happened_to_a_record_is_kept(
    bench: Bench, eventually: Callable[..., Any]
) -> None:
    dead_lettered(bench)
    shared = await bench.load()
    bench.own()
    bench.time_ms = 5
    bench.write_errors = [ErrorCode.network_exception]
    said = shared.acknowledge("m", [AckBatch(0, 9, [3])])
    assert said is not None
    with pytest.raises(ApiError):
        await said
    place = shared.where(4)
    assert place is not None
    where, start, end = place
    lock_ms = bench.terms.records.lock_ms
    assert where == (RecordState.ACQUIRED, 1, "m", 1_000_000 + lock_ms)
    assert (start, end) == (0, 10)
    bench.letters.given_up_from = 7
    bench.time_ms = 9
    said = shared.acknowledge("m", [AckBatch(0, 9, [3])])
    assert said is not None
    await said
    await eventually(lambda: shared.is_idle)

    def told(offset: int) -> list[tuple[int, str, str]]:
        known = bench.history.of(KEY, offset)
        assert known.since_ms is None
        return [(at_ms - 1_000_000, note.what.value, note.who) for at_ms, note in known.notes]

    common = [(5, "acquired", "m"), (5, "rejected", "m"), (5, "not_stored", "m")]
    assert told(4) == [*common, (9, "rejected", "m"), (9, "letter_written", "dlq.t")]
    assert told(7)[-1] == (9, "letter_given_up", "dlq.t")
    assert told(99) == []
