"""What a power failure leaves of files."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from random import Random

from simulation.disk import FullDisks, PageCache, SyncedSizes
from simulation.process import CURRENT, Process


def test_a_power_failure_truncates_unsynced_bytes_only(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    path = folder / "0.log"
    synced = SyncedSizes()
    with synced.watching(), path.open("wb", buffering=0) as file:
        file.write(b"x" * 100)
        os.fsync(file.fileno())
        file.write(b"y" * 900)
    assert synced.synced_bytes(str(path)) == 100
    assert synced.synced_bytes(str(folder / "other.log")) == 0
    (line,) = synced.cut_unsynced(tmp_path, Random(1))
    assert 100 <= path.stat().st_size < 1_000
    assert str(path.stat().st_size) in line
    assert path.read_bytes()[:100] == b"x" * 100


def test_a_fully_synced_file_is_not_truncated(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    path = tmp_path / "t-0" / "0.log"
    synced = SyncedSizes()
    with synced.watching(), path.open("wb", buffering=0) as file:
        file.write(b"x" * 100)
        os.fdatasync(file.fileno())
    assert synced.cut_unsynced(tmp_path, Random(1)) == []


def test_a_power_failure_empties_some_files_that_were_replaced_without_a_sync(
    tmp_path: Path,
) -> None:
    synced = SyncedSizes()
    for number in range(20):
        folder = tmp_path / f"t-{number}"
        folder.mkdir()
        (folder / "leader-epoch-checkpoint").write_bytes(b"old")
        with synced.watching(), (folder / "5.snapshot").open("wb", buffering=0) as file:
            file.write(b"new")
            os.fsync(file.fileno())
    cut = synced.empty_unsynced(tmp_path, Random(1))
    assert 0 < len(cut) < 20
    sizes = [path.stat().st_size for path in tmp_path.glob("*/*")]
    assert (sizes.count(0), sizes.count(3)) == (len(cut), 40 - len(cut))


def test_a_read_that_must_not_wait_gets_all_bytes_or_some_or_none(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"12345678")
    counts = []
    with PageCache(Random(1)).watching(), path.open("rb") as file:
        for _ in range(500):
            buffer = bytearray(8)
            try:
                count = os.preadv(file.fileno(), [memoryview(buffer)], 0, os.RWF_NOWAIT)
            except BlockingIOError:
                count = 0
            assert buffer == b"12345678"[:count].ljust(8, b"\0")
            counts.append(count)
            assert os.preadv(file.fileno(), [memoryview(buffer)], 0) == 8
    assert set(counts) == set(range(9))
    assert counts.count(8) > 400


def refused(write: Callable[[], object]) -> bool:
    try:
        write()
    except OSError as error:
        return error.errno == errno.ENOSPC
    return False


def test_a_full_disk_takes_a_part_of_a_write_and_then_nothing(tmp_path: Path) -> None:
    disks = FullDisks(Random(1))
    broker, other = Process("one"), Process("other")
    fd = os.open(tmp_path / "0.log", os.O_RDWR | os.O_CREAT)

    def append(data: bytes) -> int:
        end = os.fstat(fd).st_size
        return os.pwritev(fd, [memoryview(data)[:1], memoryview(data)[1:]], end)

    with disks.watching():
        assert not disks.were_full
        assert disks.has_space("one")
        disks.fill("one")
        assert (disks.has_space("one"), disks.has_space("other")) == (False, True)
        assert 0 < broker.context.run(append, b"12345678") < 8
        for write in (
            lambda: append(b"9"),
            lambda: os.pwrite(fd, b"9", 0),
            lambda: os.posix_fallocate(fd, 0, 100),
        ):
            assert broker.context.run(refused, write)
        assert not broker.context.run(refused, lambda: os.posix_fallocate(fd, 0, 1))
        assert other.context.run(append, b"9") == 1
        disks.empty("one")
        assert broker.context.run(append, b"9") == 1
    os.close(fd)
    assert disks.were_full
    assert CURRENT.get(None) is None


def fails(sync: Callable[[], object]) -> bool:
    try:
        sync()
    except OSError as error:
        return error.errno == errno.EIO
    return False


def test_a_failed_sync_is_told_once_and_its_bytes_are_lost(tmp_path: Path) -> None:
    told: list[str] = []
    synced = SyncedSizes(told.append)
    broker = Process("one")
    folder = tmp_path / "t-0"
    folder.mkdir()
    path, other = folder / "0.log", folder / "0.index"
    with synced.watching(), path.open("wb", buffering=0) as log, other.open("wb") as index:
        log.write(b"x" * 100)
        broker.context.run(os.fsync, log.fileno())
        synced.fail_next("one", only_logs=True)
        log.write(b"y" * 50)
        assert not synced.have_failed
        broker.context.run(os.fsync, index.fileno())
        Process("other").context.run(os.fsync, log.fileno())
        log.write(b"z" * 50)
        assert broker.context.run(fails, lambda: os.fdatasync(log.fileno()))
        assert not broker.context.run(fails, lambda: os.fdatasync(log.fileno()))
    assert synced.have_failed
    assert told == ["one: the sync of t-0/0.log fails"]
    assert synced.synced_bytes(str(path)) == 150
    assert synced.drop_lost(tmp_path) == ["t-0/0.log at 150 of 200"]
    assert path.stat().st_size == 150
    assert synced.drop_lost(tmp_path) == []
