import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.errors import CorruptIndexError
from ottla.log.offset_index import OffsetIndex

BASE = 1_000_000_000_000


def _new(path: Path, *entries: tuple[int, int]) -> OffsetIndex:
    path.unlink(missing_ok=True)
    index = OffsetIndex(str(path), BASE)
    index.reset()
    for offset, position in entries:
        index.append(BASE + offset, position)
    return index


def test_the_file_is_kafkas(tmp_path: Path) -> None:
    path = tmp_path / "i.index"
    index = _new(path, (9, 4100), (25, 9000))
    index.store()
    assert path.read_bytes() == struct.pack(">iiii", 9, 4100, 25, 9000)
    index.append(BASE + 40, 14_000)
    index.release()
    assert path.read_bytes() == struct.pack(">iiiiii", 9, 4100, 25, 9000, 40, 14_000)


@given(
    steps=st.lists(st.tuples(st.integers(1, 1_000), st.integers(1, 100_000)), max_size=60),
    asked=st.integers(-10, 70_000),
    data=st.data(),
)
def test_look_ups_agree_with_a_list(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[int, int]],
    asked: int,
    data: st.DataObject,
) -> None:
    entries, offset, position = [], 0, 0
    for by, bytes_on in steps:
        offset, position = offset + by, position + bytes_on
        entries.append((offset, position))
    index = _new(tmp_path_factory.getbasetemp() / "look-ups.index", *entries)
    before = [entry for entry in entries if entry[0] <= asked]
    expected = (BASE + before[-1][0], before[-1][1]) if before else (BASE, 0)
    assert index.lookup(BASE + asked) == expected  # in memory
    index.release()
    assert index.lookup(BASE + asked) == expected  # in the file
    cut = data.draw(st.integers(0, 70_000))
    index.truncate_to(BASE + cut)
    left = [entry for entry in entries if entry[0] < cut]
    assert index.last() == ((BASE + left[-1][0], left[-1][1]) if left else (BASE, 0))
    index.release()
    assert index.last() == ((BASE + left[-1][0], left[-1][1]) if left else (BASE, 0))


def test_half_an_entry_is_insane(tmp_path: Path) -> None:
    path = tmp_path / "i.index"
    path.write_bytes(bytes(12))
    index = OffsetIndex(str(path), 0)
    for use in (index.load, index.last, lambda: index.lookup(5)):
        with pytest.raises(CorruptIndexError):
            use()


def test_zeros_after_the_entries_are_insane(tmp_path: Path) -> None:
    path = tmp_path / "i.index"
    path.write_bytes(struct.pack(">ii", 9, 4100) + bytes(80))
    with pytest.raises(CorruptIndexError):
        OffsetIndex(str(path), 0).load()


def test_a_missing_file_is_insane(tmp_path: Path) -> None:
    index = OffsetIndex(str(tmp_path / "none"), 0)
    for use in (index.load, index.last, lambda: index.lookup(5)):
        with pytest.raises(CorruptIndexError, match="missing"):
            use()
