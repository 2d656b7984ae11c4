"""Indexes of large segments that are found damaged are built again off the event loop."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.log.rebuilding import open_rebuilding
from tests.turns import calls_of

from ottla.log import scan
from ottla.log.compaction import plan_compaction
from ottla.log.errors import RebuildingError
from ottla.log.file_range import FileRange
from ottla.log.index_rebuild import MAX_AT_ONCE_BYTES
from ottla.log.log import Log
from ottla.log.lookup import max_timestamp_searches, timestamp_searches
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.log.retention import take_out
from ottla.log.segment import MAX_SCANNED
from ottla.log.task import Rebuild
from ottla.log.truncation import truncate_to
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.record import Record

T = TypeVar("T")

SMALL = b"v" * 20
LARGE = b"v" * 6_000


class Large:
    """A log of two segments that are too large to index at once, cleanly closed."""

    def __init__(self, bench: Any, value: bytes) -> None:
        self.bench = bench.configure(
            segment_bytes=MAX_AT_ONCE_BYTES + 200_000, index_interval_bytes=1_000
        )
        log = self.bench.open()
        number = 0
        while len(log.segments) < 2 or log.active.size_bytes <= MAX_AT_ONCE_BYTES:
            time_ms = 1_000_000 + number * 10 + (500 if number % 5 == 0 else 0)
            bench.append(log, [Record(0, time_ms, b"k%d" % (number % 50), value)])
            number += 1
        log.close()
        self.end = log.end_offset
        self.sound = self.indexes()
        self.rebuilds: list[Rebuild] = []

    def indexes(self) -> dict[str, bytes]:
        return {
            path.name: path.read_bytes()
            for path in self.bench.folder.iterdir()
            if path.suffix in (".index", ".timeindex")
        }

    def path(self, number: int, suffix: str) -> Path:
        path: Path = self.bench.folder / self.bench.names(suffix)[number]
        return path

    def open(self) -> Log:
        return open_rebuilding(self.bench, self.end, self.rebuilds)

    def finish(self) -> None:
        rebuild = self.rebuilds.pop()
        thread = threading.Thread(target=rebuild.run)
        thread.start()
        thread.join()
        rebuild.apply()
        rebuild.end()

    def patiently(self, look: Callable[[], T]) -> T:
        """The result of `look`, once the rebuilds that it begins are over."""
        for _ in range(3):
            try:
                return look()
            except RebuildingError:
                self.finish()
        return look()


@pytest.fixture
def large(bench: Any) -> Large:
    return Large(bench, LARGE)


def _garbage(path: Path) -> None:
    path.write_bytes(b"\x00\x00\x00\x01\x7f\x7f\x7f\x7f" * (path.stat().st_size // 8 // 3 * 3))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "removed": lambda path: path.unlink(),
    "torn": lambda path: path.write_bytes(path.read_bytes()[:-5]),
    "garbage": _garbage,
    "a folder": _folder,
}


def _place(found: FileRange) -> tuple[int, int, int]:
    return found.base_offset, found.position, found.size_bytes


def _by_time(log: Log, time_ms: int) -> Any:
    return next((hit for each in timestamp_searches(log, time_ms) if (hit := each.run())), None)


def _largest(log: Log) -> Any:
    return next(max_timestamp_searches(log)).run()


LOOKS: dict[str, Callable[[Log, int], Any]] = {
    "read": lambda log, offset: _place(log.read(offset, max_bytes=1)),
    "upper bound": lambda log, offset: log.upper_bound(
        log.read(offset, max_bytes=1), log.end_offset
    ),
    "by time": lambda log, offset: _by_time(log, 1_000_000 + offset * 10),
    "largest time": lambda log, offset: _largest(log),
    "retention": lambda log, offset: [each.largest_timestamp() for each in log.segments],
    "ends": lambda log, offset: [each.next_offset for each in log.segments],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_each_look_up_is_right_after_the_rebuild(
    large: Large, look: Any, suffix: str, damage: Any
) -> None:
    expected = [look(large.open(), offset) for offset in (10, large.end - 10)]
    logs = large.open(), large.open()
    for path in [large.path(number, suffix) for number in (0, 1)]:
        damage(path)
    found = [
        large.patiently(partial(look, log, at))
        for log, at in zip(logs, (10, large.end - 10), strict=True)
    ]
    assert found == expected
    assert not large.bench.names(".rebuilt")


def test_what_is_built_is_what_the_appends_have_written(
    large: Large, caplog: pytest.LogCaptureFixture
) -> None:
    log = large.open()
    for number in (0, 1):
        _garbage(large.path(number, ".index"))
        _garbage(large.path(number, ".timeindex"))
    for offset in (5, large.end - 5):
        large.patiently(partial(log.read, offset, max_bytes=1))
    assert large.indexes() == large.sound
    assert len(caplog.messages) == 2
    first = large.path(0, ".log")
    assert caplog.messages[0].startswith(f"the indexes of {first} are built again: ")


def test_the_loop_reads_no_batches(bench: Any) -> None:
    """All headers of the segment were read by the look-up."""
    large = Large(bench, SMALL)
    log = large.open()
    _garbage(large.path(0, ".index"))

    def look() -> None:
        with pytest.raises(RebuildingError):
            log.read(5, max_bytes=1)

    _, calls = calls_of(look)
    rebuild = large.rebuilds[0]
    rebuild.run()
    _, calls_after = calls_of(rebuild.apply)
    rebuild.end()
    assert log.segments[1].base_offset > 8_000
    assert calls + calls_after < 1_000
    assert log.read(5, max_bytes=1).size_bytes


def test_an_index_that_lacks_entries_is_found_before_the_batches_are_read(bench: Any) -> None:
    large = Large(bench, b"")
    bench.configure(segment_bytes=4 << 20)
    last = large.open()
    while last.end_offset < last.active.base_offset + MAX_SCANNED + 2_000:
        bench.append(last, [Record(0, 5_000_000, None, b"")])
    last.close()
    large.end = last.end_offset
    expected = large.path(1, ".index").read_bytes()
    path = large.path(1, ".index")
    path.write_bytes(b"")
    log = large.open()
    with pytest.raises(RebuildingError):
        log.read(large.end - 5, max_bytes=1)
    large.finish()
    assert log.read(large.end - 5, max_bytes=1).size_bytes
    assert path.read_bytes() == expected


def test_all_readers_wait_for_one_rebuild(large: Large) -> None:
    log = large.open()
    _garbage(large.path(0, ".index"))
    met = []
    for offset in (5, 50, 5):
        with pytest.raises(RebuildingError) as raised:
            log.read(offset, max_bytes=1)
        met.append(raised.value.rebuild)
    assert met == [large.rebuilds[0]] * 3
    assert not met[0].is_over
    large.finish()
    assert met[0].is_over
    assert not large.rebuilds


def test_a_small_segment_is_indexed_at_once(bench: Any) -> None:
    log = bench.configure(segment_bytes=MAX_AT_ONCE_BYTES).open()
    bench.files.rebuild_later = lambda rebuild: pytest.fail("it is small")
    bench.fill(log, 50)
    log.close()
    for name in bench.names(".index"):
        _garbage(bench.folder / name)
    files, config = OpenFiles(8), bench.config
    files.rebuild_later = bench.files.rebuild_later
    again = open_log(
        str(bench.folder), config, files, now_ms=1, recovery_point=log.end_offset, clean=True
    )
    assert again.read(5, max_bytes=1).size_bytes


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_nothing_is_appended_or_cut_meanwhile(large: Large, suffix: str) -> None:
    """So what the thread has read stays true."""
    log, path = large.open(), large.path(1, suffix)
    path.write_bytes(path.read_bytes()[:-5])
    for write in (
        lambda: large.bench.append(log),
        lambda: large.bench.append(log),
        lambda: truncate_to(log, large.end - 1, now_ms=1),
    ):
        with pytest.raises(RebuildingError) as raised:
            write()
        assert raised.value.code is ErrorCode.not_leader_or_follower
    assert len(large.rebuilds) == 1
    assert log.end_offset == large.end
    large.finish()
    assert large.indexes() == large.sound
    assert large.bench.append(log).first_offset == large.end
    truncate_to(log, large.end, now_ms=1)
    log.close()
    assert len(large.bench.read_all(log, large.end - 50)) == 50
    assert large.indexes() == large.sound


def test_a_cut_is_right_after_the_rebuild(large: Large) -> None:
    log = large.open()
    _garbage(large.path(1, ".index"))
    to = log.active.base_offset + 20
    large.patiently(lambda: truncate_to(log, to, now_ms=1))
    assert log.end_offset == to
    assert large.bench.append(log).first_offset == to
    log.close()
    assert len(large.bench.read_all(log, to - 5)) == 6


def _compact(large: Large, log: Log) -> None:
    log.config = large.bench.configure(cleanup_compact=True, cleanup_delete=False).config
    plan = plan_compaction(
        log, clean_offset=None, now_ms=9_000_000, high_watermark=large.end, only_if_due=False
    )
    assert plan is not None
    plan.run()
    assert plan.apply()


def _take_out(large: Large, log: Log) -> None:
    take_out(log, [log.segments[0]])


def _delete(large: Large, log: Log) -> None:
    renamed = large.bench.folder.with_name("t-0.1-delete")
    large.bench.folder.rename(renamed)
    log.deleted(str(renamed))


@pytest.mark.parametrize("has_run", [False, True], ids=["before it has run", "before its apply"])
@pytest.mark.parametrize("change", [_take_out, _compact, _delete])
def test_if_the_segment_leaves_the_log_it_changes_nothing(
    large: Large, change: Any, has_run: bool
) -> None:
    log = large.open()
    _garbage(large.path(0, ".index"))
    with pytest.raises(RebuildingError):
        log.read(5, max_bytes=1)
    (rebuild,) = large.rebuilds
    if has_run:
        rebuild.run()
    change(large, log)
    before = _contents(log)
    large.finish()
    assert rebuild.is_over
    assert _contents(log) == before
    if not log.is_closed:
        assert large.patiently(lambda: log.read(log.start_offset, max_bytes=1)).size_bytes


def _contents(log: Log) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in Path(log.folder).iterdir()
        if path.suffix != ".rebuilt"
    }


def test_a_stop_meanwhile_needs_no_rebuild(large: Large) -> None:
    log = large.open()
    _garbage(large.path(1, ".timeindex"))
    with pytest.raises(RebuildingError):
        large.bench.append(log)
    (rebuild,) = large.rebuilds
    log.files.rebuild_later = None
    rebuild.end()
    large.bench.append(log)
    log.close()
    assert large.bench.read_all(log, large.end - 1)


def test_a_crash_leaves_files_that_the_next_start_removes(large: Large) -> None:
    log = large.open()
    _garbage(large.path(0, ".index"))
    with pytest.raises(RebuildingError):
        log.read(5, max_bytes=1)
    large.rebuilds.pop().run()
    left = large.bench.names(".rebuilt")
    assert [name.rsplit(".", 2)[0] for name in left] == [
        f"{0:020d}.index",
        f"{0:020d}.timeindex",
    ]
    again = large.open()
    assert not large.bench.names(".rebuilt")
    large.patiently(lambda: again.read(5, max_bytes=1))
    assert large.indexes() == large.sound


def test_damaged_batches_are_a_storage_error_and_tried_once(large: Large) -> None:
    content = bytearray(large.path(0, ".log").read_bytes())
    content[600_000:620_000] = bytes(20_000)
    large.path(0, ".log").write_bytes(content)
    log = large.open()
    _garbage(large.path(0, ".index"))
    damaged = large.path(0, ".index").read_bytes()
    for _ in range(3):
        with pytest.raises(ApiError) as raised:
            large.patiently(lambda: log.read(5, max_bytes=1))
        assert raised.value.code is ErrorCode.kafka_storage_error
        assert f"{large.path(0, '.log')} is damaged" in str(raised.value)
        assert not large.rebuilds
    assert large.path(0, ".index").read_bytes() == damaged
    assert not large.bench.names(".rebuilt")


def test_a_disk_that_fails_is_a_storage_error_and_tried_again(
    large: Large, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = large.open()
    _garbage(large.path(0, ".index"))

    def fail(*place: Any) -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(scan, "in_portions", fail)
    for _ in range(2):
        with pytest.raises(ApiError) as raised:
            large.patiently(lambda: log.read(5, max_bytes=1))
        assert raised.value.code is ErrorCode.kafka_storage_error
        assert "Input/output error" in str(raised.value)
    monkeypatch.undo()
    assert large.patiently(lambda: log.read(5, max_bytes=1)).size_bytes
    assert large.indexes() == large.sound


def test_a_file_that_cannot_be_replaced_is_a_storage_error(large: Large) -> None:
    log = large.open()
    _garbage(large.path(0, ".index"))
    with pytest.raises(RebuildingError):
        log.read(5, max_bytes=1)
    rebuild = large.rebuilds.pop()
    rebuild.run()
    for name in large.bench.names(".rebuilt"):
        (large.bench.folder / name).unlink()
    rebuild.apply()
    rebuild.end()
    with pytest.raises(ApiError) as raised:
        log.read(5, max_bytes=1)
    assert raised.value.code is ErrorCode.kafka_storage_error
    assert large.patiently(lambda: log.read(5, max_bytes=1)).size_bytes
