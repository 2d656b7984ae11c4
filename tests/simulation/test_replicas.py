"""Reads logs from their files: the appended bytes, or everything after a truncation."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from simulation.replicas import NOTHING, Replica

from ottla.records.build import build_batch
from ottla.records.header import read_header
from ottla.records.record import Record


def batch(offset: int, epoch: int, *values: bytes) -> bytes:
    """A batch as stored in a log."""
    built = bytearray(build_batch([Record(0, 1_000, None, value) for value in values]))
    built[0:8] = offset.to_bytes(8, "big")
    built[12:16] = epoch.to_bytes(4, "big")
    return bytes(built)


def log(path: Path, data: bytes) -> Any:
    path.write_bytes(data)
    return SimpleNamespace(segments=[SimpleNamespace(path=str(path), size_bytes=len(data))])


def test_each_offset_has_the_epoch_and_checksum_of_its_batch(tmp_path: Path) -> None:
    first, second = batch(0, 1, b"a", b"b"), batch(2, 3, b"c")
    replica = Replica()
    replica.update(log(tmp_path / "0.log", first))
    replica.update(log(tmp_path / "0.log", first + second))
    assert [each.leader_epoch for each in replica.entries] == [1, 1, 3]
    assert replica.entries[2].crc == read_header(second).crc
    assert replica.ends == [len(first), len(first), len(first) + len(second)]


def test_a_truncated_and_rewritten_log_is_read_again(tmp_path: Path) -> None:
    path, first = tmp_path / "0.log", batch(0, 1, b"a")
    old, new = batch(1, 1, b"old"), batch(1, 2, b"new")
    assert len(old) == len(new)
    replica = Replica()
    replica.update(log(path, first + old))
    replica.update(log(path, first + new))
    assert [each.leader_epoch for each in replica.entries] == [1, 2]
    replica.update(log(path, first))
    assert len(replica.entries) == 1
    replica.update(log(path, b""))
    assert replica.entries == []


def test_a_torn_tail_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.log").write_bytes(batch(0, 1, b"a") + batch(1, 1, b"b")[:-3])
    replica = Replica()
    replica.update_from_folder(tmp_path)
    assert len(replica.entries) == 1


def test_a_log_has_no_records_before_its_start(tmp_path: Path) -> None:
    replica = Replica()
    replica.update(log(tmp_path / "2.log", batch(2, 1, b"a")))
    assert replica.entries[:2] == [NOTHING, NOTHING]
    assert len(replica.entries) == 3


def test_a_missing_file_is_not_an_error(tmp_path: Path) -> None:
    gone = log(tmp_path / "0.log", batch(0, 1, b"a"))
    (tmp_path / "0.log").unlink()
    replica = Replica()
    replica.update(gone)
    assert replica.entries == []


def test_a_new_segment_without_a_batch_is_read_from_its_start(tmp_path: Path) -> None:
    first, second = batch(0, 1, b"a"), batch(1, 1, b"b")
    begun = log(tmp_path / "0.log", first)
    new = log(tmp_path / "1.log", second[:-3]).segments
    begun.segments += new
    replica = Replica()
    replica.update(begun)
    assert len(replica.entries) == 1
    # Retention removed the first one.
    replica.update(log(tmp_path / "1.log", second))
    assert replica.entries[1].crc == read_header(second).crc
    assert len(replica.entries) == 2
