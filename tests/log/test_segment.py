import os
import random
from typing import Any

import pytest
from tests.log.flipped_bits import flipped

from ottla.log import page_cache
from ottla.log.log import Log
from ottla.log.lookup import timestamp_searches
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.log.page_cache import NotCachedError
from ottla.log.segment import Found
from ottla.protocol.errors import ApiError, ErrorCode
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


@pytest.fixture
def filled(bench: Any) -> Any:
    """Two closed segments and an active one, cleanly closed; times are not in order."""
    log = bench.configure(segment_bytes=1_500, index_interval_bytes=150).open()
    for number in range(30):
        time_ms = 1_000_000 + number * 10 + (500 if number % 5 == 0 else 0)
        bench.append(log, [Record(0, time_ms + n, None, b"v" * 30) for n in range(2)])
    log.close()
    assert len(log.segments) == 3
    bench.end = log.end_offset
    bench.expected = _answers(bench, _opened(bench))
    return bench


def _opened(bench: Any) -> Log:
    bench.files = OpenFiles(8)
    return open_log(
        str(bench.folder),
        bench.config,
        bench.files,
        now_ms=1,
        recovery_point=bench.end,
        clean=True,
    )


def _answers(bench: Any, log: Log) -> Any:
    found = [log.find(segment, offset) for segment in log.segments for offset in range(bench.end)]
    times = [_by_time(log, time_ms) for time_ms in range(999_990, 1_000_800, 37)]
    largest = [segment.largest_timestamp() for segment in log.segments]
    ends = [segment.next_offset for segment in log.segments]
    return found, times, largest, ends


def _by_time(log: Log, time_ms: int) -> Any:
    return next((hit for each in timestamp_searches(log, time_ms) if (hit := each.run())), None)


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_flipped_bit_changes_no_answer(filled: Any, suffix: str, number: int) -> None:
    path = filled.folder / filled.names(suffix)[number]
    assert path.stat().st_size >= 24
    for _ in flipped(path, every=5):
        assert _answers(filled, _opened(filled)) == filled.expected


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_lost_entries_changes_no_answer(filled: Any, suffix: str) -> None:
    for name in filled.names(suffix):
        path = filled.folder / name
        content = path.read_bytes()
        for size in range(0, len(content), 4):
            if size % 12 == 0 < size and suffix == ".timeindex":
                # Only a search through the segment would tell, if times are not in order.
                continue
            path.write_bytes(content[:size])
            assert _answers(filled, _opened(filled)) == filled.expected
        for content_then in (bytes(len(content)), content + bytes(24), content + b"\xff" * 24):
            path.write_bytes(content_then)
            assert _answers(filled, _opened(filled)) == filled.expected
        path.write_bytes(content)


def test_a_rebuilt_index_is_one_line(filled: Any, caplog: pytest.LogCaptureFixture) -> None:
    path = filled.folder / filled.names(".index")[0]
    path.write_bytes(b"\x7f" * path.stat().st_size)
    log = _opened(filled)
    for _ in range(2):
        _answers(filled, log)
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(f"the indexes of {path.with_suffix('.log')} are built")


def test_the_next_append_is_right_with_damaged_indexes(filled: Any) -> None:
    for suffix in (".index", ".timeindex"):
        path = filled.folder / filled.names(suffix)[-1]
        path.write_bytes(path.read_bytes()[:-5] + b"\x05\x05\x05\x05\x05")
    log = _opened(filled)
    assert filled.append(log).first_offset == filled.end


def test_a_damaged_segment_is_a_storage_error_and_is_read_around(filled: Any) -> None:
    path = filled.folder / filled.names(".log")[0]
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 100] = bytes(100)
    path.write_bytes(content)
    log = _opened(filled)
    answers = [_reads(log, offset, str(path)) for offset in range(filled.end)]
    first = log.segments[1].base_offset
    assert "nothing" not in answers
    assert 0 < answers.count("error") < first
    assert set(answers[first:]) == {"found"}
    # What is after the bad place can be read as far as the index names it.
    assert answers[0] == answers[first - 1] == "found"


def _reads(log: Log, offset: int, path: str) -> str:
    try:
        return "found" if log.read(offset, max_bytes=1).size_bytes else "nothing"
    except ApiError as error:
        is_told = error.code is ErrorCode.kafka_storage_error and path in str(error)
        return "error" if is_told else str(error)


def test_no_append_follows_a_damaged_end(filled: Any) -> None:
    """The second attempt took the segment for complete, and wrote after the garbage."""
    path = filled.folder / filled.names(".log")[-1]
    content = path.read_bytes()
    path.write_bytes(content[:-40] + bytes(40))
    path.write_bytes(bytes(len(content)))
    log = _opened(filled)
    for _ in range(3):
        with pytest.raises(ApiError) as caught:
            filled.append(log)
        assert caught.value.code is ErrorCode.kafka_storage_error
        assert path.stat().st_size == len(content)
