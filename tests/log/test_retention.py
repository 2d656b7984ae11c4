from typing import Any

import pytest

from ottla.log.log import Log
from ottla.log.retention import expired_segments, remove_expired

HOUR_MS = 3_600_000


@pytest.fixture
def old(bench: Any) -> Any:
    """Ten segments, each an hour younger than the one before."""
    bench.log = bench.configure(retention_ms=5 * HOUR_MS).open()
    for _ in range(10):
        bench.now_ms += HOUR_MS
        bench.fill(bench.log, 4)
        bench.log.roll(bench.now_ms)
    bench.fill(bench.log, 1)
    return bench


def _remove(bench: Any, high_watermark: int | None = None) -> int:
    log: Log = bench.log
    before = len(log.segments)
    removal = remove_expired(
        log,
        now_ms=bench.now_ms,
        high_watermark=log.end_offset if high_watermark is None else high_watermark,
    )
    if removal is not None:
        assert all(path.endswith(".deleted") for path in removal.paths)
        removal.run()
    assert not bench.names(".deleted")
    return before - len(log.segments)


def test_segments_older_than_retention_ms_go(old: Any) -> None:
    assert _remove(old) == 4
    assert old.log.start_offset == 4 * 12
    assert [record.offset for record in old.read_all(old.log)] == list(range(48, 123))
    assert len(old.names(".log")) == len(old.names(".timeindex")) == len(old.log.segments)
    assert len(old.names(".snapshot")) == len(old.log.segments) - 1 + 1
    assert _remove(old) == 0


def test_retention_for_ever(old: Any) -> None:
    old.log.config = old.configure(retention_ms=-1).config
    old.now_ms *= 100
    assert _remove(old) == 0


def test_the_oldest_go_until_the_size_is_kept(old: Any) -> None:
    size = old.log.segments[0].size_bytes
    keep = old.log.size_bytes - 3 * size + 1
    old.log.config = old.configure(retention_ms=-1, retention_bytes=keep).config
    assert _remove(old) == 2
    assert old.log.size_bytes >= keep


def test_nothing_uncommitted_goes(old: Any) -> None:
    old.now_ms += 100 * HOUR_MS
    assert _remove(old, high_watermark=30) == 2
    assert old.log.start_offset == 24


def test_an_idle_log_empties_and_goes_on(old: Any) -> None:
    old.now_ms += 100 * HOUR_MS
    _remove(old)
    log = old.log
    assert (log.start_offset, log.end_offset, log.size_bytes) == (123, 123, 0)
    assert len(log.segments) == 1
    assert _remove(old) == 0
    assert old.append(log, 1).first_offset == 123
    again = old.open(recovery_point=log.recovery_point, start_offset=123)
    assert (again.start_offset, again.end_offset) == (123, 124)


def test_segments_before_the_log_start_go_without_a_delete_policy(old: Any) -> None:
    old.log.config = old.configure(cleanup_delete=False, cleanup_compact=True).config
    old.now_ms += 100 * HOUR_MS
    assert _remove(old) == 0
    old.log.advance_start(30)
    assert _remove(old) == 2
    assert old.log.start_offset == 30  # in the middle of a segment, which stays


def test_a_reader_finishes_its_read(old: Any) -> None:
    held = old.log.read(0, max_bytes=10**6)
    expected = held.read()
    assert _remove(old) == 4
    assert held.read() == expected


def test_looking_changes_nothing(old: Any) -> None:
    found = expired_segments(old.log, now_ms=old.now_ms, high_watermark=123)
    assert [segment.base_offset for segment in found] == [0, 12, 24, 36]
    assert len(old.log.segments) == 11
