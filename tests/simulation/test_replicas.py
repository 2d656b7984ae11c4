"""Reads logs from their files: the appended bytes, or everything after a truncation."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from simulation.replicas import NOTHING, Entry, Replica, content, values_of

from ottla.records.build import build_batch
from ottla.records.header import read_header
from ottla.records.record import Record


def batch(offset: int, epoch: int, *values: bytes) -> bytes:
    """A batch as stored in a log."""
    built = bytearray(build_batch([Record(0, 1_000, None, value) for value in values]))
    built[0:8] = offset.to_bytes(8, "big")
    built[12:16] = epoch.to_bytes(4, "big")
    return bytes(built)


def segment(path: Path, data: bytes, base_offset: int = 0) -> Any:
    path.write_bytes(data)
    return SimpleNamespace(path=str(path), size_bytes=len(data), base_offset=base_offset)


def log(path: Path, data: bytes) -> Any:
    return SimpleNamespace(segments=[segment(path, data)], start_offset=0, end_offset=0)


def test_each_offset_has_the_epoch_and_checksum_of_its_batch(tmp_path: Path) -> None:
    first, second = batch(0, 1, b"a", b"b"), batch(2, 3, b"c")
    replica = Replica()
    replica.update(log(tmp_path / "0.log", first))
    replica.update(log(tmp_path / "0.log", first + second))
    assert [each.leader_epoch for each in replica.entries] == [1, 1, 3]
    assert replica.entries[2].crc == read_header(second).crc
    assert replica._ends == [len(first), len(first), len(first) + len(second)]


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


def test_a_log_that_is_down_begins_with_its_first_segment(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000002.log").write_bytes(batch(2, 1, b"a"))
    replica = Replica()
    replica.update_from_folder(tmp_path)
    assert (replica.start, len(replica.entries)) == (2, 3)


def test_an_empty_segment_above_a_gap_may_be_truncated(tmp_path: Path) -> None:
    replica = Replica(is_compacted=True)
    full, gap = segment(tmp_path / "0.log", batch(0, 1, b"a")), segment(tmp_path / "5.log", b"", 5)
    replica.update(SimpleNamespace(segments=[full, gap], start_offset=0, end_offset=5))
    assert len(replica.entries) == 5
    empty = segment(tmp_path / "1.log", b"", 1)
    replica.update(SimpleNamespace(segments=[full, empty], start_offset=0, end_offset=1))
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


def test_a_compacted_log_has_epochs_and_gaps(tmp_path: Path) -> None:
    replica = Replica(is_compacted=True)
    replica.update(log(tmp_path / "0.log", batch(0, 1, b"a") + batch(3, 2, b"b")))
    assert replica.entries == [Entry(1, 0), NOTHING, NOTHING, Entry(2, 0)]


def test_an_empty_log_may_begin_anywhere(tmp_path: Path) -> None:
    emptied = log(tmp_path / "0.log", b"")
    emptied.segments[0].base_offset = emptied.start_offset = emptied.end_offset = 3
    replica = Replica()
    replica.update(emptied)
    assert (replica.entries, replica.start) == ([NOTHING] * 3, 3)


def test_a_batch_is_synced_with_its_own_segment(tmp_path: Path) -> None:
    first, second = batch(0, 1, b"a"), batch(1, 1, b"b")
    rolled = log(tmp_path / "0.log", first)
    rolled.segments.append(segment(tmp_path / "1.log", second, 1))
    replica = Replica()
    replica.update(rolled)
    synced = {str(tmp_path / "0.log"): len(first), str(tmp_path / "1.log"): len(second) - 1}
    assert replica.synced_by(0, synced.__getitem__)
    assert not replica.synced_by(1, synced.__getitem__)


def test_what_is_behind_a_torn_segment_is_gone(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.log").write_bytes(batch(0, 1, b"a")[:-1])
    (tmp_path / "00000000000000000001.log").write_bytes(batch(1, 1, b"b"))
    replica = Replica()
    replica.update_from_folder(tmp_path)
    assert replica.entries == []


def test_what_does_not_follow_the_segment_before_is_gone(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.log").write_bytes(batch(0, 1, b"a"))
    (tmp_path / "00000000000000000002.log").write_bytes(batch(2, 1, b"b"))
    (tmp_path / "00000000000000000003.log").write_bytes(b"")
    replica, compacted = Replica(), Replica(is_compacted=True)
    for each in (replica, compacted):
        each.update_from_folder(tmp_path)
    assert len(replica.entries) == 1
    assert len(compacted.entries) == 3


def test_the_content_of_a_log_from_an_offset_on(tmp_path: Path) -> None:
    first, second, third = batch(0, 1, b"a", b"b"), batch(2, 1, b"c"), batch(3, 1, b"d")
    rolled = log(tmp_path / "0.log", first + second)
    rolled.segments.append(segment(tmp_path / "3.log", third, 3))
    assert content(rolled, 1) == first + second + third
    assert content(rolled, 2) == second + third
    assert content(rolled, 3) == third
    assert list(values_of(rolled)) == ["a", "b", "c", "d"]
