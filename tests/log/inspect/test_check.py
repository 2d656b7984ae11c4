"""Each kind of damage is found and named; a sound folder has none."""

from pathlib import Path

import pytest

from ottla.log import offset_index, time_index
from ottla.log.inspect.check import Checked, check_partition
from ottla.records.build import build_batch
from ottla.records.compression import Compression
from ottla.records.record import Record

FIRST, SECOND = f"{0:020d}", f"{10:020d}"


def batch(offset: int, count: int = 5, *, epoch: int = 0, compression: int = 0) -> bytes:
    records = [
        Record(offset + number, 1000 + offset + number, b"k", b"v" * 50) for number in range(count)
    ]
    return build_batch(records, base_offset=offset, leader_epoch=epoch, compression=compression)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sound partition: two segments, the first with indexes."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    one, two = batch(0, compression=Compression.zstd), batch(5)
    (folder / f"{FIRST}.log").write_bytes(one + two)
    (folder / f"{FIRST}.index").write_bytes(offset_index.ENTRY.pack(9, len(one)))
    (folder / f"{FIRST}.timeindex").write_bytes(time_index.ENTRY.pack(1009, 9))
    (folder / f"{SECOND}.log").write_bytes(batch(10) + batch(20, epoch=3))
    (folder / f"{SECOND}.index").write_bytes(bytes(800))
    return folder


def faults(folder: Path) -> list[str]:
    return [f"{each.file}@{each.position}: {each.fault}" for each in check_partition(folder).faults]


def test_sound_folder(folder: Path) -> None:
    size_bytes = sum(path.stat().st_size for path in folder.glob("*.log"))
    assert check_partition(folder) == Checked(
        folder,
        segments=2,
        batches=4,
        records=20,
        size_bytes=size_bytes,
        start_offset=0,
        next_offset=25,
        leader_epoch=3,
    )


def test_torn_tail_of_the_last_segment_is_no_fault(folder: Path) -> None:
    with (folder / f"{SECOND}.log").open("ab") as file:
        file.write(batch(25)[:80])
    checked = check_partition(folder)
    assert (checked.faults, checked.torn_bytes, checked.next_offset) == ([], 80, 25)


def test_torn_tail_of_a_closed_segment_is_one(folder: Path) -> None:
    path = folder / f"{FIRST}.log"
    path.write_bytes(path.read_bytes() + batch(10)[:30])
    assert faults(folder)[0].endswith("30 bytes are not a batch")


def test_changed_byte(folder: Path) -> None:
    path = folder / f"{SECOND}.log"
    data = bytearray(path.read_bytes())
    data[80] ^= 1
    path.write_bytes(data)
    (found,) = faults(folder)
    assert found.startswith(f"{SECOND}.log@0:")
    assert "crc" in found


def test_repeated_offsets(folder: Path) -> None:
    (folder / f"{SECOND}.log").write_bytes(batch(10) + batch(12))
    (found,) = faults(folder)
    assert "offset 12, expected 15 or more" in found


def test_batch_that_reaches_into_the_next_segment(folder: Path) -> None:
    (folder / f"{FIRST}.log").write_bytes(batch(0, 12))
    assert any("offset 11 belongs in segment 10" in each for each in faults(folder))


def test_leader_epoch_that_goes_back(folder: Path) -> None:
    (folder / f"{SECOND}.log").write_bytes(batch(10, epoch=2) + batch(15, epoch=1))
    (found,) = faults(folder)
    assert "leader epoch 1 after 2" in found


@pytest.mark.parametrize(
    ("entries", "what"),
    [
        ([(9, 5)], "no batch begins at position 5"),
        ([(8, None)], "the batch there ends at 9"),
        ([(9, None), (9, None)], "does not follow"),
    ],
)
def test_wrong_offset_index(folder: Path, entries: list[tuple[int, int | None]], what: str) -> None:
    second = len(batch(0, compression=Compression.zstd))
    (folder / f"{FIRST}.index").write_bytes(
        b"".join(
            offset_index.ENTRY.pack(offset, second if position is None else position)
            for offset, position in entries
        )
    )
    assert any(what in each for each in faults(folder))


@pytest.mark.parametrize(
    ("entries", "what"),
    [
        ([(1008, 9)], "the batch there has 1009"),
        ([(1009, 99)], "offset 99 is not in the segment"),
        ([(1009, 9), (1004, 4)], "time 1004 after 1009"),
    ],
)
def test_wrong_time_index(folder: Path, entries: list[tuple[int, int]], what: str) -> None:
    (folder / f"{FIRST}.timeindex").write_bytes(
        b"".join(time_index.ENTRY.pack(*entry) for entry in entries)
    )
    assert any(what in each for each in faults(folder))


def test_garbage_ends_the_segment(folder: Path) -> None:
    path = folder / f"{FIRST}.log"
    path.write_bytes(batch(0) + b"\xff" * 100)
    found = faults(folder)
    assert any(f"{FIRST}.log@{len(batch(0))}" in each for each in found)
