"""Reading a partition's files without a broker."""

from pathlib import Path

import pytest

from ottla.log import offset_index, time_index
from ottla.log.inspect.errors import InspectError
from ottla.log.inspect.folder import (
    Segment,
    SegmentReader,
    is_partition,
    partition_folders,
    read_entries,
    read_partition,
)
from ottla.records.build import build_batch
from ottla.records.errors import CorruptBatchError
from ottla.records.record import Record


def batch(offset: int, count: int = 2, value: bytes = b"v") -> bytes:
    records = [Record(offset + number, 1000 + number, b"k", value) for number in range(count)]
    return build_batch(records, base_offset=offset, leader_epoch=0)


def segment(folder: Path, base_offset: int, data: bytes) -> Segment:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{base_offset:020d}.log"
    path.write_bytes(data)
    return Segment(base_offset, path)


def test_segments_come_in_the_order_of_offsets(tmp_path: Path) -> None:
    for base in (20, 0, 100):
        segment(tmp_path / "t-0", base, b"")
    (tmp_path / "t-0" / "leader-epoch-checkpoint").write_text("0\n0\n")
    assert [each.base_offset for each in read_partition(tmp_path / "t-0")] == [0, 20, 100]


def test_one_segment_file_is_enough(tmp_path: Path) -> None:
    written = segment(tmp_path / "t-0", 20, b"")
    assert read_partition(written.log) == [written]


def test_data_folder_names_its_partitions(tmp_path: Path) -> None:
    for name in ("b-0", "a-10", "a-9", "with-dash-1"):
        segment(tmp_path / name, 0, b"")
    (tmp_path / "empty-0").mkdir()
    names = [each.name for each in partition_folders(tmp_path)]
    assert names == ["a-9", "a-10", "b-0", "with-dash-1"]
    assert not is_partition(tmp_path)
    with pytest.raises(InspectError, match="is a data folder") as failure:
        read_partition(tmp_path)
    assert "a-9, a-10" in (failure.value.hint or "")


def test_a_folder_that_is_not_a_partition_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InspectError, match="holds no segments"):
        read_partition(tmp_path)
    with pytest.raises(InspectError, match="does not exist"):
        read_partition(tmp_path / "missing")
    (tmp_path / "notes.log").write_text("x")
    with pytest.raises(InspectError, match="is not a segment"):
        read_partition(tmp_path / "notes.log")


def test_batches_with_their_positions(tmp_path: Path) -> None:
    first, second = batch(0), batch(2, 3, b"w" * 3_000_000)
    with SegmentReader(segment(tmp_path, 0, first + second + batch(5))) as reader:
        seen = list(reader.batches())
        assert [each.position for each in seen] == [0, len(first), len(first) + len(second)]
        assert [each.header.base_offset for each in seen] == [0, 2, 5]
        assert reader.read(seen[1]) == second
        assert reader.left_bytes == 0


@pytest.mark.parametrize("cut", [1, 60, 61, 100])
def test_a_torn_tail_is_ignored(tmp_path: Path, cut: int) -> None:
    first, second = batch(0), batch(2, 3, b"w" * 200)
    with SegmentReader(segment(tmp_path, 0, first + second[:cut])) as reader:
        seen = list(reader.batches())
        assert [each.whole for each in seen] == ([True] if cut < 61 else [True, False])
        assert reader.left_bytes == cut


def test_invalid_bytes_are_reported_with_their_position(tmp_path: Path) -> None:
    first = batch(0)
    with SegmentReader(segment(tmp_path, 0, first + bytes(100))) as reader:
        with pytest.raises(CorruptBatchError):
            list(reader.batches())
        assert reader.position == len(first)


def test_entries_end_at_the_zeros_of_a_live_index(tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    entries = [(number, number * 100) for number in range(1, 5000)]
    path.write_bytes(b"".join(offset_index.ENTRY.pack(*entry) for entry in entries) + bytes(80_000))
    assert read_entries(path, offset_index.ENTRY) == entries
    assert read_entries(tmp_path / "missing.timeindex", time_index.ENTRY) == []
