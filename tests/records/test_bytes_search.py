"""Bytes in bytes, by the C library and without it: the same."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.records import bytes_search
from ottla.records.bytes_search import Search, find_in, find_in_parts

BOTH = pytest.mark.parametrize("search", [find_in, find_in_parts], ids=["best", "in parts"])


@BOTH
def test_what_lies_across_two_parts_is_found(
    monkeypatch: pytest.MonkeyPatch, search: Search
) -> None:
    monkeypatch.setattr(bytes_search, "PART_BYTES", 300)
    data = bytearray(b"-" * 1000)
    for at in (0, 299, 298, 300, 599, 997):
        data[at : at + 3] = b"key"
        for begin, end in ((0, 1000), (at, 1000), (at, at + 3), (at + 1, 1000), (0, at + 2)):
            assert search(bytes(data), b"key", begin, end) == bytes(data).find(b"key", begin, end)
        data[at : at + 3] = b"---"
    assert search(b"", b"key", 0, 0) == -1


@given(st.data())
def test_any_bytes(draw: st.DataObject) -> None:
    data = draw.draw(st.lists(st.sampled_from(b"\0ab\xff"), max_size=60).map(bytes))
    needle = draw.draw(st.lists(st.sampled_from(b"\0ab\xff"), min_size=1, max_size=4).map(bytes))
    begin = draw.draw(st.integers(0, len(data) + 2))
    end = draw.draw(st.integers(0, len(data) + 2))
    for search in (find_in, find_in_parts):
        assert search(data, needle, begin, end) == data.find(needle, begin, end)


def test_other_threads_run_meanwhile() -> None:
    """The C library is here, and is called without Python's lock: what it looks for is what it
    takes longest for, and another thread counts.
    """
    assert find_in is not find_in_parts
    data, counted, is_over = bytes(64 << 20), [0], threading.Event()

    def count() -> None:
        while not is_over.is_set():
            counted[0] += 1

    counter = threading.Thread(target=count)
    counter.start()
    try:
        while not counted[0]:
            pass
        before = counted[0]
        assert find_in(data, bytes(20) + b"\1", 0, len(data)) == -1
        # One wait for the lock is 5 ms; a search that held it would let it count nothing.
        assert counted[0] > before
    finally:
        is_over.set()
        counter.join()
