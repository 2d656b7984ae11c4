"""Recovery says what it cuts, and keeps aside what must have been sound before."""

import logging
import os
from pathlib import Path
from typing import Any

import pytest

from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.protocol.errors import ApiError
from ottla.records.header import iterate_headers


@pytest.fixture
def killed(bench: Any) -> Any:
    """A log of three segments of batches of three records, stopped without a clean shutdown."""
    log = bench.configure(segment_bytes=900).open()
    bench.fill(log, 10)
    assert [each.base_offset for each in log.segments] == [0, 12, 24]
    assert log.end_offset == 30
    bench.all = bench.read_all(log)
    bench.paths = [Path(each.path) for each in log.segments]
    return bench


def _open(bench: Any, **how: Any) -> Log:
    bench.files = OpenFiles(8)
    return open_log(str(bench.folder), bench.config, bench.files, now_ms=1, **how)


def _damage(path: Path, position: int) -> bytes:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    return bytes(content)


def _lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    found = [(each.levelno, each.message) for each in caplog.records]
    caplog.clear()
    return found


def test_a_sound_log_says_nothing(killed: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert _open(killed).end_offset == 30
    assert _lines(caplog) == []


def test_a_torn_end_is_one_line_and_gone(killed: Any, caplog: pytest.LogCaptureFixture) -> None:
    last = killed.paths[-1]
    size = last.stat().st_size
    os.truncate(last, size - 5)
    batch = size // 2
    for recovery_point in (24, 0):
        assert _open(killed, recovery_point=recovery_point).end_offset == 27
    ((level, line),) = _lines(caplog)
    assert level == logging.WARNING
    assert line == (
        f"{killed.folder} now ends at offset 27. {last.name}, position {batch}: half a batch."
        f" Cut off: {batch - 5} bytes"
    )
    assert killed.names(".cut") == []


def test_a_bad_batch_in_the_last_segment_is_cut_with_those_after_it(
    killed: Any, caplog: pytest.LogCaptureFixture
) -> None:
    last = killed.paths[-1]
    size = last.stat().st_size
    _damage(last, size // 2 - 1)
    assert _open(killed, recovery_point=24).end_offset == 24
    ((level, line),) = _lines(caplog)
    assert level == logging.WARNING
    assert "now ends at offset 24" in line
    assert "is corrupt: stored crc" in line
    assert line.endswith(f"Cut off: up to 6 records (offsets 24 to 29), {size} bytes")
    assert killed.names(".cut") == []


@pytest.mark.parametrize("how", [{"recovery_point": 27}, {"is_doubtful": True}])
def test_what_had_reached_the_disk_is_kept_aside(
    killed: Any, caplog: pytest.LogCaptureFixture, how: dict[str, Any]
) -> None:
    last = killed.paths[-1]
    damaged = _damage(last, last.stat().st_size // 2 - 1)
    assert _open(killed, **how).end_offset == 24
    ((level, line),) = _lines(caplog)
    assert level == logging.ERROR
    name = f"{24:020}.log.cut"
    assert f"kept aside in {killed.folder}: {name}" in line
    assert ("27 had reached the disk" in line) == ("recovery_point" in how)
    assert ("not known" in line) == ("recovery_point" not in how)
    assert (killed.folder / name).read_bytes() == damaged


def test_whole_segments_are_kept_aside(killed: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A bad batch is no proof against the segments after it."""
    contents = [path.read_bytes() for path in killed.paths]
    third = sum(each.size_bytes for each in [*iterate_headers(contents[0])][:2])
    damaged = _damage(killed.paths[0], third + 30)
    log = _open(killed)
    assert (log.end_offset, len(log.segments)) == (6, 1)
    ((level, line),) = _lines(caplog)
    assert level == logging.ERROR
    gone = len(contents[0]) - third + len(contents[1]) + len(contents[2])
    assert f"up to 24 records (offsets 6 to 29), {gone} bytes of 3 segments" in line
    kept = {name: (killed.folder / name).read_bytes() for name in killed.names(".cut")}
    assert kept == {
        f"{6:020}.log.cut": damaged[third:],
        f"{12:020}.log.cut": contents[1],
        f"{24:020}.log.cut": contents[2],
    }
    # The batches after the bad one are intact.
    (first, second) = iterate_headers(kept[f"{6:020}.log.cut"])
    assert (first.base_offset, second.base_offset) == (6, 9)


@pytest.mark.parametrize("left", [0, 2])
def test_a_segment_whose_last_batches_are_missing_ends_the_log(
    killed: Any, caplog: pytest.LogCaptureFixture, left: int
) -> None:
    """A power failure took them, and left the segments after them."""
    contents = [path.read_bytes() for path in killed.paths]
    headers = [*iterate_headers(contents[1])]
    os.truncate(killed.paths[1], sum(each.size_bytes for each in headers[:left]))
    log = _open(killed, recovery_point=3)
    end_offset = 12 + 3 * left
    assert (log.end_offset, len(log.segments)) == (end_offset, 2)
    assert killed.read_all(log) == killed.all[:end_offset]
    ((level, line),) = _lines(caplog)
    assert level == logging.ERROR
    assert f"now ends at offset {end_offset}. " in line
    assert f": offset 24 where {end_offset} is next. Cut off: up to {30 - end_offset} rec" in line
    assert killed.names(".cut") == [f"{24:020}.log.cut"]
    assert (killed.folder / f"{24:020}.log.cut").read_bytes() == contents[2]
    killed.fill(log, 1)
    assert len(killed.read_all(log)) == end_offset + 3


def test_a_compacted_log_has_such_ends(killed: Any, caplog: pytest.LogCaptureFixture) -> None:
    first = next(iterate_headers(killed.paths[1].read_bytes()))
    os.truncate(killed.paths[1], first.size_bytes)
    killed.configure(cleanup_compact=True)
    assert _open(killed).end_offset == 30
    assert _lines(caplog) == []


def test_what_is_kept_is_never_read_nor_replaced(killed: Any) -> None:
    _damage(killed.paths[-1], 70)
    log = _open(killed, recovery_point=30)
    killed.fill(log, 2)
    assert log.end_offset == 30
    _damage(killed.paths[-1], 70)
    log = _open(killed, recovery_point=30)
    assert killed.read_all(log) == killed.all[:24]
    assert killed.names(".cut") == [f"{24:020}.log.cut"]
    assert killed.names(".cut-2") == [f"{24:020}.log.cut-2"]


def test_zeros_are_said_and_not_kept(killed: Any, caplog: pytest.LogCaptureFixture) -> None:
    last = killed.paths[-1]
    size = last.stat().st_size
    last.write_bytes(bytes(size))
    assert _open(killed, recovery_point=30).end_offset == 24
    ((level, line),) = _lines(caplog)
    assert level == logging.ERROR
    assert line.endswith(
        f"Cut off: {size} bytes, though everything below offset 30 had reached the disk"
    )
    assert killed.names(".cut") == []


def test_nothing_is_cut_that_cannot_be_kept_aside(
    killed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _damage(killed.paths[0], 70)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ApiError, match=r"cannot keep what is cut off .*: No space left on device"):
        _open(killed)
    assert [path.stat().st_size > 0 for path in killed.paths] == [True] * 3
    assert killed.paths[0].read_bytes() == before


def test_a_start_after_the_end_keeps_the_segments_aside(
    killed: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A wrong number in the checkpoint of log starts must not delete a log."""
    contents = [path.read_bytes() for path in killed.paths]
    log = _open(killed, start_offset=5_000)
    assert (log.start_offset, log.end_offset) == (5_000, 5_000)
    ((level, line),) = _lines(caplog)
    assert level == logging.ERROR
    names = [f"{base:020}.log.cut" for base in (0, 12, 24)]
    assert line == (
        f"{killed.folder} begins again at offset 5000, without records: the checkpoint of log"
        " starts has this offset, and its segments have only offsets 0 to 29;"
        f" kept aside in {killed.folder}: {', '.join(names)}"
    )
    assert [(killed.folder / name).read_bytes() for name in names] == contents
