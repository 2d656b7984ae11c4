import os
from pathlib import Path

import pytest

from ottla.log.errors import CorruptIndexError
from ottla.log.page_cache import NotCachedError
from ottla.log.transaction_index import ENTRY, AbortedTransaction, TransactionIndex

ENTRIES = [
    AbortedTransaction(7, 10, 14, 12),
    AbortedTransaction(8, 12, 20, 21),
    AbortedTransaction(7, 22, 30, 31),
]


@pytest.fixture
def index(tmp_path: Path) -> TransactionIndex:
    made = TransactionIndex(str(tmp_path / "00000000000000000010.txnindex"), 10)
    for entry in ENTRIES:
        made.append(entry)
    return made


def _again(index: TransactionIndex) -> TransactionIndex:
    return TransactionIndex(index.path, index.base_offset)


def test_the_file_has_kafkas_format(index: TransactionIndex) -> None:
    index.store()
    data = Path(index.path).read_bytes()
    assert data[:34] == (
        bytes(2) + (7).to_bytes(8) + (10).to_bytes(8) + (14).to_bytes(8) + (12).to_bytes(8)
    )
    assert len(data) == 3 * ENTRY.size == 102


@pytest.mark.parametrize("stored", [0, 2, 3])
def test_it_lists_what_overlaps_whether_stored_or_not(
    index: TransactionIndex, tmp_path: Path, stored: int
) -> None:
    split = TransactionIndex(str(tmp_path / "split"), 10)
    for number, entry in enumerate(ENTRIES):
        if number == stored:
            split.store()
        split.append(entry)
    for offset in range(35):
        for up_to in range(offset, 35):
            expected = []
            complete = False
            for entry in ENTRIES:
                if entry.last_offset >= offset:
                    if entry.first_offset < up_to:
                        expected.append(entry)
                    if entry.last_stable_offset >= up_to:
                        complete = True
                        break
            assert split.overlapping(offset, up_to) == (expected, complete)


def test_the_fetch_offset_counts_and_the_upper_bound_does_not(index: TransactionIndex) -> None:
    """Trap 6: the last stable offset off by one."""
    assert index.overlapping(30, 40)[0] == [ENTRIES[2]], "its marker lies at 30"
    assert index.overlapping(31, 40)[0] == []
    assert index.overlapping(15, 22)[0] == [ENTRIES[1]], "it begins at 22"
    assert index.overlapping(15, 23) == (ENTRIES[1:], True)


def test_many_entries_are_read_in_pieces(tmp_path: Path) -> None:
    index = TransactionIndex(str(tmp_path / "many"), 0)
    every = [AbortedTransaction(1, n * 3, n * 3 + 2, n * 3 + 3) for n in range(1000)]
    for entry in every:
        index.append(entry)
    index.store()
    assert index.overlapping(0, 10_000)[0] == every
    assert index.overlapping(1500, 1510)[0] == every[500:504]


def test_the_entries_from_an_offset_on_are_removed(index: TransactionIndex) -> None:
    for offset, left in ((31, 3), (30, 2), (20, 1), (10, 0)):
        index.keep(index.count_before(offset))
        assert index.overlapping(0, 10**6)[0] == ENTRIES[:left]
        index.store()
        assert _again(index).overlapping(0, 10**6)[0] == ENTRIES[:left]


def test_some_are_stored_and_some_are_not(index: TransactionIndex) -> None:
    """ENTRIES end at 14, 20 and 30."""
    index.store()
    more = [AbortedTransaction(9, at, at + 1, at) for at in (40, 50)]
    for entry in more:
        index.append(entry)
    found = [index.count_before(offset) for offset in (0, 15, 30, 31, 41, 42, 51, 52)]
    assert found == [0, 1, 2, 3, 3, 4, 4, 5]
    index.keep(4)
    assert list(index.entries()) == [*ENTRIES, more[0]]
    index.keep(1)
    assert list(index.entries()) == ENTRIES[:1]


def test_of_many_only_a_few_are_read_to_remove_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = TransactionIndex(str(tmp_path / "many"), 0)
    for number in range(10_000):
        index.append(AbortedTransaction(1, number, number, number))
    index.store()
    read: list[int] = []

    def pread(fd: int, size_bytes: int, position: int) -> bytes:
        read.append(size_bytes)
        return real(fd, size_bytes, position)

    real = os.pread
    monkeypatch.setattr(os, "pread", pread)
    index.keep(index.count_before(9_000))
    assert sum(read) < 20 * ENTRY.size
    assert sum(1 for _ in index.entries()) == 9_000


def test_removal_before_and_after_a_store_agree(index: TransactionIndex) -> None:
    index.keep(index.count_before(25))
    index.append(ENTRIES[2])
    index.store()
    index.keep(index.count_before(25))
    index.append(AbortedTransaction(9, 24, 27, 28))
    index.store()
    assert [each.producer_id for each in _again(index).overlapping(0, 10**6)[0]] == [7, 8, 9]


def test_a_torn_file_is_insane(index: TransactionIndex) -> None:
    index.store()
    os.truncate(index.path, 2 * ENTRY.size + 5)
    with pytest.raises(CorruptIndexError, match="ends inside an entry"):
        _again(index).load()


@pytest.mark.parametrize("at", [1, 20])
def test_another_version_or_an_offset_below_the_segment_is_insane(
    index: TransactionIndex, at: int
) -> None:
    index.store()
    data = bytearray(Path(index.path).read_bytes())
    data[at : at + 5] = b"\x01\x00\x00\x00\x00" if at == 1 else bytes(5)
    data[18:26] = bytes(8) if at == 20 else data[18:26]
    Path(index.path).write_bytes(data)
    with pytest.raises(CorruptIndexError, match="cannot be right"):
        _again(index).overlapping(0, 10**6)


def test_a_file_that_vanishes_is_insane(index: TransactionIndex) -> None:
    index.store()
    os.unlink(index.path)
    with pytest.raises(CorruptIndexError, match="No such file"):
        index.overlapping(0, 40)


def test_an_empty_file_is_insane(index: TransactionIndex) -> None:
    """Without entries there is none, so this one has lost them."""
    Path(index.path).touch()
    with pytest.raises(CorruptIndexError, match="is empty"):
        index.overlapping(0, 40)


def test_it_can_refuse_to_wait_for_the_disk(index: TransactionIndex) -> None:
    index.store()

    def uncached(fd: int, size_bytes: int, position: int) -> bytes:
        raise NotCachedError

    with pytest.raises(NotCachedError):
        index.overlapping(0, 40, uncached)


def test_a_reset_index_is_empty(index: TransactionIndex) -> None:
    index.store()
    index.reset()
    assert index.overlapping(0, 10**6) == ([], False)
    assert not os.path.exists(index.path)
