"""Windows cover a segment without gap or overlap, and searches in them find what is there."""

from pathlib import Path

import pytest

from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.records.build import build_batch
from ottla.records.compression import Compression
from ottla.records.header import iterate_headers
from ottla.records.record import Record
from ottla.tracing import segment_search
from ottla.tracing.segment_search import Window, first_in_window, last_in_window, windows


@pytest.fixture(params=list(Compression))
def log(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    """Sixty batches of two records, keys key0 to key9 in turn, the index as fine as it gets."""
    monkeypatch.setattr(segment_search, "WINDOW_BYTES", 1000)
    config = LogConfig(index_interval_bytes=0)
    opened = open_log(str(tmp_path / "t-0"), config, OpenFiles(8), now_ms=1000)
    for number in range(0, 120, 2):
        records = [
            Record(0, 1000 + at, b"key%d" % (at % 10), bytes(range(50)))
            for at in (number, number + 1)
        ]
        batch = build_batch(records, compression=request.param)
        opened.append(batch, list(iterate_headers(batch)), leader_epoch=0, now_ms=1000)
    return opened


def test_windows_cover_the_segment(log: Log) -> None:
    found = list(windows(log.active, log.end_offset))
    assert len(found) > 3
    assert found[0].end == log.active.size_bytes
    assert [window.end for window in found[1:]] == [window.position for window in found[:-1]]
    assert (found[-1].position, found[-1].first_offset) == (0, 0)
    for window in found:
        batch = log.active.find(window.first_offset)
        assert batch is not None
        assert batch.position == window.position


def test_damaged_indexes_change_no_window(log: Log) -> None:
    expected = [window[1:] for window in windows(log.active, log.end_offset)]
    log.active.seal()
    path = Path(log.active.offset_index.path)
    for garbage in (b"\x7f" * path.stat().st_size, b"abc"):
        path.write_bytes(garbage)
        files = OpenFiles(8)
        again = open_log(log.folder, log.config, files, now_ms=1, recovery_point=120, clean=True)
        assert [window[1:] for window in windows(again.active, 120)] == expected


def test_an_empty_segment_has_none(tmp_path: Path) -> None:
    log = open_log(str(tmp_path / "t-0"), LogConfig(), OpenFiles(8), now_ms=1000)
    assert list(windows(log.active, 0)) == []


def whole(log: Log) -> Window:
    return Window(log.active.file(), 0, log.active.size_bytes, 0)


def test_the_last_of_a_key(log: Log) -> None:
    window = whole(log)
    last = last_in_window(window, b"key7", 120)
    assert last is not None
    assert last.offset == 117
    before = last_in_window(window, b"key7", 117)
    assert before is not None
    assert before.offset == 107
    assert last_in_window(window, b"key7", 7) is None
    assert last_in_window(window, b"key", 120) is None


def test_a_later_one_of_a_key(log: Log) -> None:
    window = whole(log)
    for after, offset in ((0, 7), (7, 17)):
        found = first_in_window(window, b"key7", after)
        assert found is not None
        assert found[0] == offset
        assert found[1].base_offset <= offset <= found[1].last_offset
    assert first_in_window(window, b"key7", 117) is None
    assert first_in_window(window, b"absent", 0) is None
