from pathlib import Path

from faults.anomaly import Kind
from faults.history import Epochs
from faults.replicas import compare, epochs

from ottla.records.build import build_batch
from ottla.records.header import read_header
from ottla.records.record import Record


def batch(offset: int, *values: bytes) -> bytes:
    records = [Record(n, 1_000, None, value) for n, value in enumerate(values)]
    data = build_batch(records)
    header = read_header(data)
    header.base_offset = offset
    return header.encode() + bytes(data[61:])


def replica(tmp_path: Path, name: str, mark: int, *segments: bytes) -> Path:
    """A broker's data folder with one partition of the topic "t"."""
    folder = tmp_path / name
    (folder / "t-0").mkdir(parents=True)
    for number, segment in enumerate(segments):
        (folder / "t-0" / f"{number:020}.log").write_bytes(segment)
    (folder / "replication-offset-checkpoint").write_text(f"0\n1\nt 0 {mark}\n")
    return folder


ONE, TWO, OTHER = batch(0, b"a", b"b"), batch(2, b"c"), batch(2, b"x")


def test_equal_logs_may_have_different_segments(tmp_path: Path) -> None:
    folders = [replica(tmp_path, "a", 3, ONE + TWO), replica(tmp_path, "b", 3, ONE, TWO)]
    assert compare("t", 0, folders) == []


def test_records_above_the_high_watermark_may_differ(tmp_path: Path) -> None:
    folders = [replica(tmp_path, "a", 2, ONE + TWO), replica(tmp_path, "b", 2, ONE + OTHER)]
    assert compare("t", 0, folders) == []


def test_a_different_record_is_found(tmp_path: Path) -> None:
    folders = [replica(tmp_path, "a", 3, ONE + TWO), replica(tmp_path, "b", 2, ONE + OTHER)]
    (found,) = compare("t", 0, folders)
    assert found.kind is Kind.replicas_differ
    assert "a and b differ: offsets 2 to 2 of epoch" in found.what


def test_a_log_that_ends_below_the_high_watermark_is_found(tmp_path: Path) -> None:
    folders = [replica(tmp_path, "a", 3, ONE + TWO), replica(tmp_path, "b", 2, ONE)]
    (found,) = compare("t", 0, folders)
    assert found.what == "b: the log ends at 2, below the high watermark 3"


def test_retention_may_have_emptied_one_replica(tmp_path: Path) -> None:
    folders = [replica(tmp_path, "a", 3, ONE + TWO), replica(tmp_path, "b", 3)]
    (folders[1] / "t-0" / f"{3:020}.log").touch()
    assert compare("t", 0, folders) == []
    (folders[1] / "t-0" / f"{3:020}.log").rename(folders[1] / "t-0" / f"{2:020}.log")
    (found,) = compare("t", 0, folders)
    assert found.what == "b: the log ends at 2, below the high watermark 3"


def test_a_gap_and_a_bad_checksum_are_found(tmp_path: Path) -> None:
    gap = replica(tmp_path, "a", 4, ONE + batch(3, b"d"))
    bad = replica(tmp_path, "b", 4, ONE[:-1] + b"?" + TWO)
    found = compare("t", 0, [gap, bad])
    assert {each.kind for each in found} == {Kind.offset_gap, Kind.replicas_differ}


def test_epochs_come_from_the_checkpoint(tmp_path: Path) -> None:
    folder = replica(tmp_path, "a", 3, ONE)
    assert epochs(folder, "t", 0, 9) == Epochs(9, 0, ())
    (folder / "t-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n4 2\n")
    assert epochs(folder, "t", 0, 9) == Epochs(9, 0, ((0, 0), (4, 2)))
