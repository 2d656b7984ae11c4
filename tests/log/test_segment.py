import os
import random
from typing import Any

import pytest

from ottla.log import page_cache
from ottla.log.page_cache import NotCachedError
from ottla.log.segment import Found
from ottla.records.build import build_batch
from ottla.records.header import iterate_headers
from ottla.records.record import Record


def test_look_ups_are_the_same_in_memory_and_from_the_files(bench: Any) -> None:
    log = bench.configure(segment_bytes=10**6).open()
    bench.fill(log, 700)  # more than the recent appends that are remembered
    segment = log.active
    hot = [segment.find(offset) for offset in range(2_100)]
    log.close()
    again = bench.open(recovery_point=2_100, clean=True).active
    assert [again.find(offset) for offset in range(2_100)] == hot
    assert again.find(2_100) is None
    positions = {found.position for found in hot if found}
    assert len(positions) == 700
    assert all(found is not None and found.size_bytes > 100 for found in hot)


@pytest.mark.parametrize("seed", range(5))
def test_in_a_log_with_gaps_the_next_batch_is_found(bench: Any, seed: int) -> None:
    """Each follower of a compacted topic has such a log."""
    chance = random.Random(seed)
    log = bench.configure(segment_bytes=10**6).open()
    offset, headers = chance.randrange(3), []
    for _ in range(350):  # twice as many batches; more than the recent appends remembered
        data = b""
        for _ in range(2):
            records = [Record(0, 1, None, b"v" * 20)] * chance.randint(1, 3)
            data += build_batch(records, base_offset=offset, leader_epoch=0)
            offset += len(records) + chance.choice([0, 0, 1, 5])
        appended = list(iterate_headers(data))
        log.append_as_follower(data, appended, now_ms=1)
        headers += appended
    segment, end_offset = log.active, log.end_offset
    hot = [segment.find(offset) for offset in range(end_offset + 1)]
    bounds = [segment.upper_bound(position) for position, _ in segment.headers()]
    for offset in range(end_offset):
        (first, *_) = iterate_headers(log.read(offset, max_bytes=1).read())
        wanted = next(each for each in headers if each.last_offset >= offset)
        assert first.base_offset == wanted.base_offset
    log.close()
    cold = bench.open(recovery_point=end_offset, clean=True).active
    assert [cold.find(offset) for offset in range(end_offset + 1)] == hot
    for bound, previous in zip(bounds[1:], headers, strict=False):
        assert bound is not None
        assert bound > previous.last_offset


def test_an_index_entry_for_each_interval(bench: Any) -> None:
    log = bench.configure(segment_bytes=10**6, index_interval_bytes=1_000).open()
    bench.fill(log, 100)
    log.active.store_indexes()
    entries = os.path.getsize(log.active.offset_index.path) // 8
    assert log.size_bytes // 1_400 <= entries <= log.size_bytes // 1_000


def test_the_largest_timestamp_is_known_after_a_restart(bench: Any) -> None:
    log = bench.open()
    for at in (50, 90, 70):
        bench.append(log, [Record(0, at, None, b"v")])
    log.close()
    again = bench.open(recovery_point=3, clean=True)
    assert again.active.largest_timestamp() == 90
    assert again.active.max_timestamp_offset == 1
    assert again.active.first_timestamp() == 50


def test_records_without_a_time_are_as_old_as_their_file(bench: Any) -> None:
    log = bench.open()
    bench.append(log, [Record(0, -1, None, b"v")])
    os.utime(log.active.path, (77, 77))
    assert log.active.largest_timestamp() == 77_000


def test_truncation_cuts_log_and_indexes(bench: Any) -> None:
    log = bench.configure(segment_bytes=10**6).open()
    bench.fill(log, 60)
    found = log.active.find(91)
    assert isinstance(found, Found)
    assert log.active.truncate_to(91) == 90  # the batch of offset 90 to 92 goes whole
    assert log.active.size_bytes == found.position == os.path.getsize(log.active.path)
    assert log.active.next_offset == 90
    assert log.active.offset_index.last()[0] < 90
    assert log.active.find(90) is None


def test_one_write_may_take_more_batches_than_the_system_takes_buffers(bench: Any) -> None:
    from ottla.records.build import build_batch
    from ottla.records.header import iterate_headers

    log = bench.configure(segment_bytes=10**6).open()
    batches = b"".join(build_batch([Record(0, 1, None, b"v")]) for _ in range(1_500))
    log.append(batches, list(iterate_headers(batches)), leader_epoch=0, now_ms=1)
    assert [record.offset for record in bench.read_all(log)] == list(range(1_500))


def test_a_look_up_that_would_wait_for_the_disk_says_so(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.open()
    bench.fill(log, 60)
    segment = log.segments[0]
    assert segment is not log.active
    monkeypatch.setattr(page_cache, "read_cached", lambda fd, buffer, position: 0)
    with pytest.raises(NotCachedError):
        segment.find(4, wait=False)
    segment.find_work(4)()
    monkeypatch.undo()
    assert segment.find(4) == segment.find(4, wait=True)
    (bench.folder / "00000000000000000000.index").unlink()
    segment.find_work(4)()
    assert segment.find(4) is not None
