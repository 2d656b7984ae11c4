"""A disk that a fault controls: a sync that fails once, and what a power failure takes."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from random import Random

import pytest
from faults.broker import controlled
from faults.disk import ControlledDisk


@pytest.fixture
def disk(tmp_path: Path) -> ControlledDisk:
    (tmp_path / "data" / "t-0").mkdir(parents=True)
    return ControlledDisk(tmp_path / "disk", tmp_path / "data")


def test_one_sync_of_a_segment_fails(tmp_path: Path, disk: ControlledDisk) -> None:
    sync = controlled(os.fsync, tmp_path / "disk")
    folder = tmp_path / "data" / "t-0"
    with (folder / "0.log").open("wb") as log, (folder / "0.index").open("wb") as index:
        disk.fail_next_sync()
        sync(index.fileno())
        assert not disk.has_failed
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            sync(log.fileno())
        assert disk.has_failed
        sync(log.fileno())
        disk.fail_next_sync()
        disk.fail_no_more()
        sync(log.fileno())


def test_a_power_failure_takes_what_is_not_synced(tmp_path: Path, disk: ControlledDisk) -> None:
    sync = controlled(os.fsync, tmp_path / "disk")
    path, other = (tmp_path / "data" / "t-0" / name for name in ("0.log", "9.log"))
    with path.open("wb", buffering=0) as log:
        log.write(b"x" * 100)
        sync(log.fileno())
        log.write(b"y" * 900)
    # The process starts again.
    controlled(os.fsync, tmp_path / "disk")
    other.write_bytes(b"z" * 500)
    lost_bytes = disk.lose_unsynced(Random(1))
    assert 100 <= path.stat().st_size < 1_000
    assert lost_bytes == 1_500 - path.stat().st_size - other.stat().st_size
    assert other.stat().st_size < 500
    assert path.read_bytes()[:100] == b"x" * 100


def test_a_sync_counts_what_was_there_when_it_began(tmp_path: Path, disk: ControlledDisk) -> None:
    path = tmp_path / "data" / "t-0" / "0.log"
    with path.open("wb", buffering=0) as log:

        def append_meanwhile(fd: int) -> None:
            os.fsync(fd)
            log.write(b"y" * 900)

        log.write(b"x" * 100)
        controlled(append_meanwhile, tmp_path / "disk")(log.fileno())
    sizes = set()
    for seed in range(20):
        disk.lose_unsynced(Random(seed))
        sizes.add(path.stat().st_size)
    assert min(sizes) < 150
    assert min(sizes) >= 100
