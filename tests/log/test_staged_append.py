"""Whatever happens between the steps of a staged append, the log has what was appended to it."""

import errno
import os
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.disk_writes import sizes_written

from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.log.staged_append import MAX_ATTEMPTS, StagedAppend
from ottla.log.truncation import truncate_to
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.build import build_batch
from ottla.records.header import HEADER_BYTES, read_header
from ottla.records.record import Record

STEP_BYTES = 300
BETWEEN = (
    "nothing", "append", "fail", "cut", "cut and append", "roll", "read", "kill", "close", "stage",
)  # fmt: skip


def staged(bench: Any, log: Log, batch: bytes) -> StagedAppend:
    return StagedAppend(log, read_header(batch), batch, bench.now_ms, step_bytes=STEP_BYTES)


def large_batch(value: bytes, **how: Any) -> bytes:
    return build_batch([Record(0, 1_000_000, b"k%d" % at, value * 100) for at in range(20)], **how)


def append(bench: Any, log: Log, batch: bytes) -> None:
    log.append(memoryview(batch), [read_header(batch)], leader_epoch=0, now_ms=bench.now_ms)


def all_values(bench: Any, log: Log) -> list[bytes | None]:
    return [record.value for record in bench.read_all(log)]


@pytest.mark.parametrize("timestamp_type", ["CreateTime", "LogAppendTime"])
def test_the_append_itself_writes_the_header_only(
    bench: Any, monkeypatch: pytest.MonkeyPatch, timestamp_type: str
) -> None:
    log = bench.configure(timestamp_type=timestamp_type).open()
    bench.fill(log, 2)
    batch = large_batch(b"a")
    sizes = sizes_written(monkeypatch)
    one = staged(bench, log, batch)
    for _ in one.steps():
        assert log.end_offset == 6
        assert len(bench.read_all(log)) == 6
    append(bench, log, batch)
    one.end()
    assert max(sizes[:-1]) <= STEP_BYTES
    assert (sum(sizes), sizes[-1]) == (len(batch), HEADER_BYTES)
    assert all_values(bench, log)[6:] == [b"a" * 100] * 20
    assert os.path.getsize(log.active.path) == log.active.size_bytes


def test_a_batch_of_one_step_is_left_to_the_append(bench: Any) -> None:
    log = bench.open()
    batch = build_batch([Record(0, 1, b"k", b"v" * 100)])
    assert list(staged(bench, log, batch).steps()) == []
    assert not log.is_on_disk


def test_what_is_not_appended_is_removed(bench: Any) -> None:
    log = bench.open()
    bench.fill(log, 2)
    one = staged(bench, log, large_batch(b"a"))
    list(one.steps())
    assert os.path.getsize(log.active.path) > log.active.size_bytes
    one.end()
    assert os.path.getsize(log.active.path) == log.active.size_bytes
    one.end()


def test_a_batch_larger_than_a_segment_rolls_and_writes_nothing(bench: Any) -> None:
    log = bench.configure(segment_bytes=1_000).open()
    bench.fill(log, 2)
    batch = large_batch(b"a")
    assert list(staged(bench, log, batch).steps()) == []
    with pytest.raises(ApiError) as refused:
        append(bench, log, batch)
    assert refused.value.code is ErrorCode.record_list_too_large
    assert len(log.segments) == 1
    assert os.path.getsize(log.active.path) == log.active.size_bytes


def test_others_that_append_all_the_time_end_the_attempts(bench: Any) -> None:
    log = bench.configure(segment_bytes=100_000).open()
    batch = large_batch(b"a")
    one = staged(bench, log, batch)
    others = 0
    for _ in one.steps():
        bench.append(log)
        others += 1
    assert others == MAX_ATTEMPTS
    append(bench, log, batch)
    one.end()
    assert len(bench.read_all(log)) == others + 20


def test_a_full_disk_is_the_appends_error(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log = bench.open()
    bench.fill(log, 2)

    def full(fd: int, buffers: list[bytes], position: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    batch = large_batch(b"a")
    one = staged(bench, log, batch)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwritev", full)
        assert list(one.steps()) == []
        with pytest.raises(ApiError) as refused:
            append(bench, log, batch)
        one.end()
    assert refused.value.code is ErrorCode.kafka_storage_error
    assert os.path.getsize(log.active.path) == log.active.size_bytes
    append(bench, log, batch)
    assert len(bench.read_all(log)) == 26


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    between=st.lists(st.tuples(st.sampled_from(BETWEEN), st.integers(0, 9)), max_size=12),
    segment_bytes=st.sampled_from([2_800, 5_000, 100_000]),
    preallocate=st.booleans(),
    is_appended=st.booleans(),
    filled=st.integers(0, 4),
)
def test_whatever_happens_between_the_steps(
    make_bench: Callable[[str], Any],
    fast_folder: Path,
    between: list[tuple[str, int]],
    segment_bytes: int,
    preallocate: bool,
    is_appended: bool,
    filled: int,
) -> None:
    bench = make_bench("unused")
    bench.folder = fast_folder / "t-0"
    shutil.rmtree(bench.folder, ignore_errors=True)
    bench.configure(segment_bytes=segment_bytes, preallocate=preallocate)
    log = bench.open()
    bench.fill(log, filled, 1)
    expected = all_values(bench, log)
    batch, others = large_batch(b"a"), []
    one = staged(bench, log, batch)
    steps = one.steps()
    for what, number in between:
        if next(steps, "end") == "end":
            break
        if what in ("append", "cut and append"):
            if what == "cut and append":
                expected = expected[:-1]
                truncate_to(log, len(expected), now_ms=bench.now_ms)
            bench.append(log, [Record(0, 1_000_000, b"k", b"%d" % number)])
            expected.append(b"%d" % number)
        elif what == "fail":
            _append_to_full_disk(bench, log, number)
        elif what == "cut":
            del expected[number:]
            truncate_to(log, len(expected), now_ms=bench.now_ms)
        elif what == "roll":
            log.roll(bench.now_ms)
        elif what == "kill":
            assert _found_after_a_kill(bench, fast_folder / "killed-0") == expected
        elif what == "close":
            log.close()
            log.is_closed = True
            log = bench.open(clean=True)
        elif what == "stage":
            others.append(staged(bench, log, large_batch(b"b" * (1 + number % 2))))
            list(islice(others[-1].steps(), 1 + number))
        assert all_values(bench, log) == expected
    else:
        list(steps)
    if is_appended:
        append(bench, log, batch)
        expected += [b"a" * 100] * 20
    for each in (one, *others):
        each.end()
    assert all_values(bench, log) == expected
    assert _found_after_a_kill(bench, fast_folder / "killed-0") == expected
    log.close()
    assert all_values(bench, bench.open(clean=True)) == expected


def _append_to_full_disk(bench: Any, log: Log, taken_bytes: int) -> None:
    real = os.pwritev

    def fails(fd: int, buffers: list[bytes], position: int) -> int:
        return real(fd, [b"".join(buffers)[:taken_bytes]], position) if taken_bytes else 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pwritev", fails)
        with pytest.raises(ApiError):
            bench.append(log)


def _found_after_a_kill(bench: Any, folder: Path) -> list[bytes | None]:
    shutil.rmtree(folder, ignore_errors=True)
    if not bench.folder.exists():
        return []
    shutil.copytree(bench.folder, folder)
    log = open_log(str(folder), bench.config, OpenFiles(8), now_ms=1, recovery_point=0)
    return all_values(bench, log)
