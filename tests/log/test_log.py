import errno
import os
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ottla.log import names
from ottla.log.flush import flush
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.log.rolling import must_roll
from ottla.log.truncation import truncate_to
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.build import build_batch
from ottla.records.header import ensure_crc, iterate_headers, read_header
from ottla.records.record import Record


def _code(act: Callable[[], object]) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        act()
    return caught.value.code


def test_offsets_have_no_gap_and_records_come_back(bench: Any) -> None:
    log = bench.open()
    first = bench.append(log, 3)
    second = bench.append(log, 2, compression=2)
    assert (first.first_offset, first.last_offset) == (0, 2)
    assert (second.first_offset, second.last_offset) == (3, 4)
    assert log.end_offset == 5
    assert [record.offset for record in bench.read_all(log)] == [0, 1, 2, 3, 4]


def test_batches_are_stored_as_received_but_for_offset_and_epoch(bench: Any) -> None:
    log = bench.open()
    bench.append(log, 4)
    batch = build_batch(
        [Record(0, 5, b"k", b"v")], producer_id=1, producer_epoch=0, base_sequence=0
    )
    log.append(memoryview(batch), [read_header(batch)], leader_epoch=9, now_ms=1)
    stored = log.read(4, max_bytes=1).read()
    assert stored[:16] == (4).to_bytes(8) + batch[8:12] + (9).to_bytes(4)
    assert stored[16:] == batch[16:]
    assert log.epochs.entries == [(0, 0), (9, 4)]


def test_log_append_time_is_stamped(bench: Any) -> None:
    log = bench.configure(timestamp_type="LogAppendTime").open()
    appended = bench.append(log, [Record(0, 5, b"k", b"v"), Record(0, 6, b"k", b"w")])
    assert appended.append_time_ms == bench.now_ms
    stored = log.read(0, max_bytes=1).read()
    ensure_crc(read_header(stored), stored)
    assert {record.timestamp_ms for record in bench.read_all(log)} == {bench.now_ms}


def test_a_duplicate_is_answered_with_its_old_offset_and_not_stored(bench: Any) -> None:
    log = bench.open()
    sent = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
    first = bench.append(log, 3, **sent)
    bench.append(log, 1)
    again = bench.append(log, 3, **sent)
    assert (again.first_offset, again.last_offset) == (first.first_offset, first.last_offset)
    assert again.is_duplicate
    assert log.end_offset == 4
    gap = {**sent, "base_sequence": 9}
    assert _code(lambda: bench.append(log, 1, **gap)) is ErrorCode.out_of_order_sequence_number
    assert log.end_offset == 4


def test_reads_begin_with_the_batch_that_holds_the_offset(bench: Any) -> None:
    log = bench.open()
    bench.fill(log, 5, records=10)
    for offset in range(50):
        header = read_header(log.read(offset, max_bytes=1).read())
        assert header.base_offset <= offset <= header.last_offset


def test_the_first_batch_may_pass_the_limit_only_where_one_is_wanted(bench: Any) -> None:
    log = bench.open()
    bench.fill(log, 2, records=10)
    size = read_header(log.read(0, max_bytes=0).read()).size_bytes
    assert log.read(0, max_bytes=0).size_bytes == size
    assert log.read(0, max_bytes=size - 1, min_one_batch=False).size_bytes == 0
    assert log.read(0, max_bytes=size, min_one_batch=False).size_bytes == size
    assert log.read(0, max_bytes=size + 7, min_one_batch=False).size_bytes == size + 7
    assert log.read(0, max_bytes=10**9).size_bytes == log.size_bytes


def test_nothing_at_or_past_the_upper_bound_is_read(bench: Any) -> None:
    log = bench.configure(segment_bytes=900).open()
    bench.fill(log, 20, records=3)
    assert len(log.segments) > 3
    for bound in range(0, 61, 3):
        offset, seen = 0, 0
        while data := log.read(offset, max_bytes=400, up_to_offset=bound).read():
            for header in iterate_headers(data):
                offset = header.next_offset
                seen += header.count
        assert (offset, seen) == (bound, bound)


def test_offsets_outside_the_log_are_out_of_range(bench: Any) -> None:
    log = bench.open()
    bench.fill(log, 3)
    log.advance_start(4)
    for offset in (-1, 3, 10):
        assert _code(partial(log.read, offset, max_bytes=1)) is ErrorCode.offset_out_of_range
    assert log.read(9, max_bytes=100).read() == b""
    assert log.read(4, max_bytes=1).read() != b""
    assert _code(lambda: log.advance_start(10)) is ErrorCode.offset_out_of_range


@pytest.mark.parametrize("reason", ["short", "full"])
def test_a_failed_write_leaves_the_log_as_it_was(
    bench: Any, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    log = bench.open()
    bench.fill(log, 3)
    size_bytes, before = log.size_bytes, bench.read_all(log)
    real = os.pwritev

    def fail(fd: int, buffers: list[bytes], position: int) -> int:
        real(fd, [b"".join(buffers)[:30]], position)
        if reason == "full":
            raise OSError(errno.ENOSPC, "No space left on device")
        return 30

    monkeypatch.setattr(os, "pwritev", fail)
    sent = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
    assert _code(lambda: bench.append(log, 3, **sent)) is ErrorCode.kafka_storage_error
    monkeypatch.undo()
    assert (log.size_bytes, log.end_offset) == (size_bytes, 9)
    assert os.path.getsize(log.active.path) == size_bytes
    assert bench.read_all(log) == before
    assert bench.append(log, 3, **sent).first_offset == 9  # not taken for a duplicate
    assert [record.offset for record in bench.read_all(log)] == list(range(12))


def test_segments_roll_by_size_time_and_index(bench: Any) -> None:
    log = bench.configure(segment_bytes=1_000, segment_ms=10_000).open()
    bench.fill(log, 30)
    assert all(segment.size_bytes <= 1_000 for segment in log.segments)
    count = len(log.segments)
    assert count > 3
    bench.now_ms += 10_003
    assert bench.append(log).rolled
    assert len(log.segments) == count + 1
    bench.configure(segment_index_bytes=24, segment_bytes=10**6)
    log.config = bench.config
    assert any(bench.append(log, 30).rolled for _ in range(4))


def test_a_batch_larger_than_a_segment_is_refused(bench: Any) -> None:
    log = bench.open()
    big = [Record(0, 1, None, bytes(5_000))]
    assert _code(lambda: bench.append(log, big)) is ErrorCode.record_list_too_large
    assert log.end_offset == 0


def test_a_reader_finishes_what_retention_deleted(bench: Any) -> None:
    log = bench.open()
    bench.fill(log, 3)
    held = log.read(0, max_bytes=10**6)
    expected = held.read()
    for name in bench.names():
        (bench.folder / name).unlink()
    for segment in log.segments:
        bench.files.forget(segment)
    assert held.read() == expected


def test_a_follower_keeps_offsets_epochs_and_gaps(bench: Any, make_bench: Any) -> None:
    leader = bench.open()
    for epoch in (1, 1, 4):
        bench.append(leader, 3, leader_epoch=epoch)
    data = leader.read(3, max_bytes=10**6).read()
    follower = make_bench("follower").open(start_offset=0)
    follower.append_as_follower(data, list(iterate_headers(data)), now_ms=1)
    assert follower.end_offset == 9
    assert follower.epochs.entries == [(1, 3), (4, 6)]
    assert follower.read(3, max_bytes=10**6).read() == data
    again = lambda: follower.append_as_follower(data, list(iterate_headers(data)), now_ms=1)  # noqa: E731
    assert _code(again) is ErrorCode.offset_out_of_range


def test_a_follower_takes_more_at_once_than_fits_a_segment(bench: Any, make_bench: Any) -> None:
    leader = bench.configure(segment_bytes=10**6).open()
    bench.fill(leader, 50)
    data = leader.read(0, max_bytes=10**6).read()
    other = make_bench("follower").configure(segment_bytes=1_000)
    follower = other.open()
    follower.append_as_follower(data, list(iterate_headers(data)), now_ms=1)
    assert len(follower.segments) > 5
    assert other.read_all(follower) == bench.read_all(leader)


def test_a_disk_full_at_a_roll_leaves_the_log_usable(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.open()
    header = read_header(build_batch([Record(0, 1, None, b"")]))
    while not must_roll(log.active, 1_000, header, 1, log.config):
        bench.append(log, 10)
    end = log.end_offset

    def fail(path: str, flags: int, mode: int = 0o777) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "open", fail)
    big = [Record(0, 1, None, bytes(900))]
    assert _code(lambda: bench.append(log, big)) is ErrorCode.kafka_storage_error
    monkeypatch.undo()
    assert log.end_offset == end
    assert bench.append(log, big).first_offset == end
    assert [record.offset for record in bench.read_all(log)] == list(range(end + 1))


@pytest.mark.parametrize("opened", [0, 1, 2])
@pytest.mark.parametrize("removes", [True, False])
def test_a_roll_that_fails_hides_nothing_after_a_restart(
    bench: Any, monkeypatch: pytest.MonkeyPatch, opened: int, removes: bool
) -> None:
    """The new segment's first file may have been made, and the disk may not let it go at once."""
    log = bench.open()
    header = read_header(build_batch([Record(0, 1, None, b"")]))
    while not must_roll(log.active, 1_000, header, 1, log.config):
        bench.append(log, 10)
    end, made = log.end_offset, 0
    real_open, big = os.open, [Record(0, 1, None, bytes(900))]

    def open_some(path: str, flags: int, mode: int = 0o777) -> int:
        nonlocal made
        if not flags & os.O_TRUNC:
            return real_open(path, flags, mode)
        if made == opened:
            raise OSError(errno.ENOSPC, "No space left on device")
        made += 1
        return real_open(path, flags, mode)

    def refuse(path: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", open_some)
        if not removes:
            patched.setattr(os, "unlink", refuse)
        assert _code(lambda: bench.append(log, big)) is ErrorCode.kafka_storage_error
        if not removes:
            assert _code(lambda: bench.append(log, 1)) is ErrorCode.kafka_storage_error
    assert bench.append(log, 1).first_offset == end, "a small batch fits the old segment"
    assert len(log.segments) == 1
    flush(log)
    log.close()
    for how in ({"clean": True}, {}):
        again = bench.open(recovery_point=end + 1, **how)
        assert [record.offset for record in bench.read_all(again)] == list(range(end + 1))
        assert bench.names(".log") == [names.file_name(0, names.LOG)]


def test_a_follower_that_could_not_write_after_a_gap_takes_what_is_in_it(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had rolled for the batch after the gap; the next leader has not compacted its log."""
    log = bench.configure(segment_bytes=1_000).open()
    bench.append(log, 10)
    end = log.end_offset
    after = build_batch([Record(0, 1, None, bytes(700))], base_offset=end + 50, leader_epoch=0)
    within = build_batch([Record(0, 1, None, b"v")], base_offset=end, leader_epoch=1)

    def fail(fd: int, buffers: Any, position: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwritev", fail)
        append = lambda: log.append_as_follower(after, [read_header(after)], now_ms=1)  # noqa: E731
        assert _code(append) is ErrorCode.kafka_storage_error
    log.append_as_follower(within, [read_header(within)], now_ms=1)
    flush(log)
    log.close()
    for how in ({"clean": True}, {}):
        again = bench.open(recovery_point=end + 1, **how)
        assert [record.offset for record in bench.read_all(again)] == list(range(end + 1))


def test_a_truncated_log_closes_with_its_indexes(bench: Any) -> None:
    log = bench.configure(segment_bytes=10**6).open()
    bench.fill(log, 40)
    truncate_to(log, 60, now_ms=1)
    expected = bench.read_all(log)
    flush(log)
    log.close()
    again = bench.open(recovery_point=60, clean=True)
    assert bench.read_all(again) == expected
    assert bench.append(again).first_offset == 60


def test_preallocated_files_end_where_the_records_do(bench: Any) -> None:
    log = bench.configure(preallocate=True).open()
    bench.append(log)
    assert os.path.getsize(log.active.path) == 4_000
    bench.fill(log, 25)
    assert [os.path.getsize(each.path) for each in log.segments[:-1]] == [
        each.size_bytes for each in log.segments[:-1]
    ]
    expected = bench.read_all(log)
    flush(log)
    log.close()
    again = bench.open(recovery_point=log.end_offset, clean=True)
    assert bench.read_all(again) == expected


class LogModel(RuleBasedStateMachine):
    """The log against a list of values: append, read, truncate, delete, crash, reopen."""

    make: Any = None
    runs = 0

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.random = random.Random(seed)
        type(self).runs += 1
        self.bench = type(self).make(f"model-{type(self).runs}")
        self.bench.configure(segment_bytes=1_500, index_interval_bytes=150)
        self.log: Log = self.bench.open()
        self.values: dict[int, bytes] = {}
        self.sequence = 0

    @rule(
        sizes=st.lists(st.integers(0, 120), min_size=1, max_size=6), compression=st.integers(0, 4)
    )
    def append(self, sizes: list[int], compression: int) -> None:
        records = [Record(0, 1, None, self.random.randbytes(size)) for size in sizes]
        idempotent = {"producer_id": 3, "producer_epoch": 0, "base_sequence": self.sequence}
        sent = idempotent if self.random.random() < 0.5 else {}
        appended = self.bench.append(self.log, records, compression=compression, **sent)
        if sent:
            self.sequence += len(records)
            again = self.bench.append(self.log, records, compression=compression, **sent)
            assert again.is_duplicate
        for number, record in enumerate(records):
            assert record.value is not None
            self.values[appended.first_offset + number] = record.value

    @rule(part=st.floats(0, 1))
    def delete_records(self, part: float) -> None:
        offset = self.log.start_offset + int(part * (self.log.end_offset - self.log.start_offset))
        self.log.advance_start(offset)
        self.values = {at: value for at, value in self.values.items() if at >= offset}

    @rule(part=st.floats(0.5, 1))
    def truncate(self, part: float) -> None:
        start, end = self.log.start_offset, self.log.end_offset
        truncate_to(self.log, start + int(part * (end - start)), now_ms=1)
        assert self.log.end_offset <= start + int(part * (end - start))
        self.values = {at: v for at, v in self.values.items() if at < self.log.end_offset}
        producer = self.log.producers.producers.get(3)
        self.sequence = producer.last_sequence + 1 if producer else 0

    @rule()
    def flush(self) -> None:
        flush(self.log)

    @rule()
    def restart(self) -> None:
        flush(self.log)
        self.log.close()
        self._open(clean=True, recovery_point=self.log.end_offset)

    @rule(cut=st.integers(0, 400))
    def crash(self, cut: int) -> None:
        """Like SIGKILL, and at times like a torn disk: the unflushed end of the file is cut."""
        active = self.log.active
        kept_from = self.log.recovery_point
        found = None if kept_from <= active.base_offset else active.find(kept_from)
        least = (
            found.position
            if found
            else (active.size_bytes if kept_from == self.log.end_offset else 0)
        )
        size = max(active.size_bytes - cut, least)
        if self.log.is_on_disk:
            os.truncate(active.path, size)
        end = self.log.end_offset
        point = self.log.recovery_point
        self._open(clean=False, recovery_point=point)
        assert point <= self.log.end_offset <= end
        self.values = {at: v for at, v in self.values.items() if at < self.log.end_offset}
        producer = self.log.producers.producers.get(3)
        self.sequence = producer.last_sequence + 1 if producer else 0

    def _open(self, **how: Any) -> None:
        self.bench.files = OpenFiles(4)
        start = self.log.start_offset
        self.log = open_log(
            str(self.bench.folder),
            self.bench.config,
            self.bench.files,
            now_ms=1,
            start_offset=start,
            **how,
        )

    @invariant()
    def reads_are_the_model(self) -> None:
        if not hasattr(self, "log"):
            return
        found = {record.offset: record.value for record in self.bench.read_all(self.log)}
        assert found == self.values
        if self.values:
            offset = self.random.choice(list(self.values))
            (first, *_) = self.bench.read_all(self.log, offset)
            assert (first.offset, first.value) == (offset, self.values[offset])


def test_the_log_agrees_with_a_model(make_bench: Any) -> None:
    LogModel.make = staticmethod(make_bench)
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        LogModel, settings=settings(max_examples=40, stateful_step_count=25, deadline=None)
    )


def test_a_roll_without_its_snapshot_is_undone(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above a gap the new segment would be the log's end after a restart, and the snapshot of an
    orderly stop would be below it."""
    log = bench.open()
    bench.send(log, 7, 3)
    replace_ = os.replace

    def refuse(source: str, target: str) -> None:
        if target.endswith(".snapshot"):
            raise OSError("no disk today")
        replace_(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refuse)
        with pytest.raises(ApiError):
            log.roll(bench.now_ms, 9)
    assert [segment.base_offset for segment in log.segments] == [0]
    log.close()
    again = bench.open(recovery_point=3, clean=True)
    assert (again.end_offset, again.last_stable_offset(3)) == (3, 0)
    assert again.roll(bench.now_ms).base_offset == 3
