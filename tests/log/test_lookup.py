import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ottla.log.flush import flush
from ottla.log.log import Log
from ottla.log.lookup import (
    FoundTimestamp,
    Search,
    max_timestamp_searches,
    timestamp_searches,
)
from ottla.log.retention import remove_expired
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.record import Record


@pytest.fixture
def timed(bench: Any) -> Any:
    """Records whose times go forth and back, over several segments."""
    rng = random.Random(2)
    bench.log = bench.configure(segment_bytes=1_500).open()
    bench.times = []
    for number in range(120):
        times = [number * 100 + rng.randrange(-900, 900) for _ in range(3)]
        bench.append(
            bench.log, [Record(0, at, b"k", b"v" * 30) for at in times], compression=number % 5
        )
        bench.times += times
    assert len(bench.log.segments) > 4
    return bench


def _first(searches: Iterator[Search]) -> FoundTimestamp | None:
    return next((found for each in searches if (found := each.run()) is not None), None)


def find_timestamp(log: Log, timestamp_ms: int) -> FoundTimestamp | None:
    return _first(timestamp_searches(log, timestamp_ms))


def find_max_timestamp(log: Log) -> FoundTimestamp | None:
    return _first(max_timestamp_searches(log))


def _expected(times: list[int], asked: int, start: int = 0) -> FoundTimestamp | None:
    for offset, at in enumerate(times[start:], start):
        if at >= asked:
            return FoundTimestamp(at, offset, 0)
    return None


def test_the_first_record_that_is_young_enough(timed: Any) -> None:
    for asked in range(-1_000, 13_500, 37):
        assert find_timestamp(timed.log, asked) == _expected(timed.times, asked)


def test_records_before_the_start_are_not_found(timed: Any) -> None:
    timed.log.advance_start(100)
    for asked in range(-1_000, 13_500, 97):
        assert find_timestamp(timed.log, asked) == _expected(timed.times, asked, 100)


def test_the_same_after_a_restart(timed: Any) -> None:
    flush(timed.log)
    timed.log.close()
    log = timed.open(recovery_point=360, clean=True)
    for asked in range(-1_000, 13_500, 97):
        assert find_timestamp(log, asked) == _expected(timed.times, asked)
    largest = max(timed.times)
    assert find_max_timestamp(log) == FoundTimestamp(largest, timed.times.index(largest), 0)


def test_the_largest_timestamp(timed: Any) -> None:
    largest = max(timed.times)
    found = find_max_timestamp(timed.log)
    assert found == FoundTimestamp(largest, timed.times.index(largest), 0)


def test_an_empty_log_has_none(bench: Any) -> None:
    log = bench.open()
    assert find_max_timestamp(log) is None
    assert find_timestamp(log, 0) is None


def test_with_append_time_the_batch_speaks_for_its_records(bench: Any) -> None:
    log = bench.configure(timestamp_type="LogAppendTime").open()
    bench.fill(log, 2)
    assert find_max_timestamp(log) == FoundTimestamp(bench.now_ms, 0, 0)


def test_segments_removed_between_two_searches_are_skipped(timed: Any) -> None:
    """Each search runs in a thread; retention goes on meanwhile."""
    log = timed.log
    searches = timestamp_searches(log, timed.times[-1] - 500)
    log.config = replace(log.config, retention_bytes=3_000)
    first = next(timestamp_searches(log, 0))
    removal = remove_expired(log, now_ms=0, high_watermark=log.end_offset)
    assert removal is not None
    removal.run()
    assert first.run() == _expected(timed.times, 0), "it holds its file"
    assert _first(searches) == _expected(timed.times, timed.times[-1] - 500, log.start_offset)


def test_a_damaged_batch_is_a_storage_error(timed: Any) -> None:
    path = Path(timed.log.segments[0].path)
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(ApiError, match="damaged") as refused:
        find_timestamp(timed.log, 0)
    assert refused.value.code is ErrorCode.kafka_storage_error
