from typing import Any

import pytest

from ottla.log.rolling import LARGEST_RELATIVE_OFFSET, must_roll
from ottla.records.build import build_batch
from ottla.records.header import read_header
from ottla.records.record import Record

LATE = 10**9


def header(timestamp: int = 1_000, offset: int = 0) -> Any:
    read = read_header(build_batch([Record(0, timestamp, None, b"")]))
    read.base_offset = offset
    return read


def test_a_segment_takes_as_many_bytes_as_it_may_hold(bench: Any) -> None:
    log = bench.configure(segment_bytes=1_000).open()
    assert not must_roll(log.active, 1_000, header(), 0, log.config)
    bench.append(log)
    left = 1_000 - log.active.size_bytes
    assert not must_roll(log.active, left, header(), 0, log.config)
    assert must_roll(log.active, left + 1, header(), 0, log.config)


def test_an_index_entry_has_room_for_so_many_offsets(bench: Any) -> None:
    log = bench.open()
    assert not must_roll(log.active, 1, header(offset=LARGEST_RELATIVE_OFFSET), 0, log.config)
    assert must_roll(log.active, 1, header(offset=LARGEST_RELATIVE_OFFSET + 1), 0, log.config)


def test_an_old_one_is_closed_unless_it_is_empty(bench: Any) -> None:
    log = bench.configure(segment_ms=500).open()
    assert not must_roll(log.active, 1, header(LATE), LATE, log.config)
    bench.append(log)
    first = log.active.first_timestamp()
    assert not must_roll(log.active, 1, header(first + 500), 0, log.config)
    assert must_roll(log.active, 1, header(first + 501), 0, log.config)


@pytest.mark.parametrize(("index_bytes", "rolls"), [(23, True), (24, False)])
def test_full_indexes_close_it(bench: Any, index_bytes: int, rolls: bool) -> None:
    """Two time entries of twelve bytes each: one may be due with the batch, one at the close."""
    log = bench.configure(segment_index_bytes=index_bytes).open()
    assert must_roll(log.active, 1, header(), 0, log.config) is rolls
