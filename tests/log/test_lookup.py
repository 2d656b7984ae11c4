import random
from typing import Any

import pytest

from ottla.log.flush import flush
from ottla.log.lookup import FoundTimestamp, find_max_timestamp, find_timestamp, locate
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
    assert locate(log, 0) is None


def test_with_append_time_the_batch_speaks_for_its_records(bench: Any) -> None:
    log = bench.configure(timestamp_type="LogAppendTime").open()
    bench.fill(log, 2)
    assert find_max_timestamp(log) == FoundTimestamp(bench.now_ms, 0, 0)


def test_where_a_record_lies(timed: Any) -> None:
    for offset in range(0, 360, 7):
        place = locate(timed.log, offset)
        assert place is not None
        with open(place.file, "rb") as file:
            data = file.read()
        assert data[place.position : place.position + 8] == place.header.base_offset.to_bytes(8)
        assert place.header.base_offset <= offset <= place.header.last_offset
        assert place.index_entry[1] <= place.position
        assert place.is_active == (offset >= timed.log.active.base_offset)
    assert locate(timed.log, 360) is None
    timed.log.advance_start(10)
    assert locate(timed.log, 9) is None
