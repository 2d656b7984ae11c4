import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.errors import CorruptIndexError
from ottla.log.time_index import TimeIndex

BASE = 5_000


def test_the_file_is_kafkas_and_times_only_grow(tmp_path: Path) -> None:
    path = tmp_path / "i.timeindex"
    index = TimeIndex(str(path), BASE)
    index.reset()
    for time, offset in ((100, BASE + 3), (100, BASE + 5), (90, BASE + 8), (101, BASE + 9)):
        index.maybe_append(time, offset)
    index.release()
    assert path.read_bytes() == struct.pack(">qiqi", 100, 3, 101, 9)


def test_records_without_a_timestamp_have_no_entry(tmp_path: Path) -> None:
    path = tmp_path / "i.timeindex"
    index = TimeIndex(str(path), BASE)
    index.reset()
    index.maybe_append(-1, BASE)
    index.maybe_append(100, BASE + 3)
    index.release()
    assert path.read_bytes() == struct.pack(">qi", 100, 3)


@given(
    steps=st.lists(st.tuples(st.integers(1, 50), st.integers(1, 100)), max_size=60),
    asked=st.integers(-10, 4_000),
)
def test_look_ups_agree_with_a_list(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]], asked: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "look-ups.timeindex"
    path.unlink(missing_ok=True)
    index = TimeIndex(str(path), BASE)
    index.reset()
    entries, time, offset = [], 0, BASE
    for later, by in steps:
        time, offset = time + later, offset + by
        entries.append((time, offset))
        index.maybe_append(time, offset)
    before = [entry for entry in entries if entry[0] <= asked]
    expected = before[-1] if before else (-1, BASE)
    assert index.lookup(asked) == expected  # in memory
    last = index.last()
    index.release()
    assert index.lookup(asked) == expected  # in the file
    assert index.last() == last
    index.load()
    assert len(index) == len(entries)
    index.truncate_to(BASE + 500)
    left = [entry for entry in entries if entry[1] < BASE + 500]
    assert index.last() == (left[-1] if left else (-1, BASE))
    index.release()
    assert index.last() == (left[-1] if left else (-1, BASE))


@pytest.mark.parametrize("content", [bytes(5), struct.pack(">qiqi", 9, 1, 3, 2)])
def test_an_insane_file_is_noticed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "i.timeindex"
    path.write_bytes(content)
    with pytest.raises(CorruptIndexError):
        TimeIndex(str(path), 0).load()


@given(
    entries=st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1)), max_size=9),
    cut=st.integers(0, 9),
)
def test_the_file_has_each_entry_in_12_bytes(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[int, int]], cut: int
) -> None:
    """Stored in two parts, and loaded again."""
    entries = sorted(dict(entries).items())
    path = tmp_path_factory.mktemp("i") / "i.timeindex"
    index = TimeIndex(str(path), BASE)
    index.reset()
    for number, (time, offset) in enumerate(entries):
        if number == cut:
            index.store()
        index.maybe_append(time, BASE + offset)
    index.store()
    content = b"".join(struct.pack(">qi", *entry) for entry in entries)
    assert path.read_bytes() == content
    again = TimeIndex(str(path), BASE)
    again.load()
    again.maybe_append(2**63 - 1, BASE + 5)
    again.store()
    assert path.read_bytes()[: len(content)] == content
    for time, offset in entries:
        assert again.lookup(time) == index.lookup(time) == (time, BASE + offset)
