"""Each source offset has its exact target offset."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.offset_map import MAX_CHAIN, MAX_NARROW, OffsetMap, Run, runs_of
from ottla.mirroring.offset_map_records import (
    MAX_RUNS,
    MapEntry,
    map_records,
    read_entry,
    start_record,
)
from ottla.mirroring.position import Origin

PARTITION = TopicPartition("t", 3)
ORIGIN = Origin("id", "there", ("cluster",))


def mapped(*runs: Run) -> OffsetMap:
    found = OffsetMap()
    found.begin(runs[0].source, runs[0].target)
    found.extend(runs)
    return found


def test_runs_end_where_either_side_skips_an_offset() -> None:
    assert runs_of([], []) == []
    assert runs_of([5, 6, 7], [0, 1, 2]) == [Run(5, 0, 3)]
    assert runs_of([5, 6, 8, 9], [0, 1, 2, 4]) == [Run(5, 0, 2), Run(8, 2, 1), Run(9, 4, 1)]


def test_an_offset_without_a_record_means_the_next_record() -> None:
    # The source has gaps at 2 and from 5 to 9, the target a marker at 2.
    found = mapped(Run(0, 0, 2), Run(3, 3, 2), Run(10, 5, 1))
    assert [found.translate(at) for at in range(12)] == [0, 1, 3, 3, 4, 5, 5, 5, 5, 5, 5, 6]


def test_a_map_without_its_beginning_knows_nothing_before_its_first_run() -> None:
    """Its topic was deleted at the target; records before the first run may be there."""
    found = OffsetMap()
    found.extend([Run(100, 90, 5)])
    assert [found.translate(at) for at in (99, 100, 104, 105)] == [None, 90, 94, 95]


def test_before_the_first_and_after_the_last_record() -> None:
    found = OffsetMap()
    assert found.translate(0) is None
    found.begin(100, 7)
    assert [found.translate(at) for at in (0, 100, 500)] == [7, 7, 7]
    found.extend([Run(110, 9, 2)])
    assert [found.translate(at) for at in (0, 100, 110, 111, 112, 500)] == [7, 9, 9, 10, 11, 11]


def test_an_entry_that_is_read_twice_counts_once() -> None:
    found = mapped(Run(0, 0, 2), Run(2, 3, 2))
    found.extend([Run(2, 3, 2), Run(4, 6, 1)])
    assert [found.translate(at) for at in range(6)] == [0, 1, 3, 4, 6, 7]


def test_a_new_beginning_replaces_all() -> None:
    found = mapped(Run(0, 0, 50))
    found.begin(3, 0)
    assert found.translate(20) == 0


def test_what_the_source_has_removed_is_forgotten() -> None:
    found = mapped(Run(0, 0, 2), Run(3, 3, 2), Run(10, 6, 5))
    found.forget_before(11)
    assert len(found) == 1
    assert found.translate(12) == 8


@pytest.mark.parametrize("records", [1, MAX_NARROW, MAX_NARROW + 1])
def test_small_transactions_one_after_the_other(records: int) -> None:
    """In several chains, some of them with wide counts."""
    count = 3 * MAX_CHAIN
    runs = [Run(at * records, at * (records + 1), records) for at in range(count)]
    found = mapped(*runs)
    assert len(found) == count
    for run in runs:
        assert found.translate(run.source) == run.target
        assert found.translate(run.source + records - 1) == run.target + records - 1
    found.extend([*runs[-2:], Run(count * records, count * (records + 1) - 1, MAX_NARROW + 1)])
    assert found.translate(count * records + 5) == count * (records + 1) + 4
    assert found.is_after_all(count * records + MAX_NARROW + 1)
    found.forget_before(runs[-1].source)
    assert len(found) <= MAX_CHAIN
    assert found.translate(runs[-1].source) == runs[-1].target


def test_small_transactions_need_little_memory() -> None:
    count = 100_000
    tracemalloc.start()
    found = OffsetMap()
    found.extend(Run(at * 10, at * 11, 10) for at in range(count))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == count
    assert size < 4 * count


@st.composite
def written(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    steps = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), max_size=60))
    sources, targets = [], []
    source, target = draw(st.integers(0, 50)), draw(st.integers(0, 50))
    for gap, marker in steps:
        source, target = source + gap, target + marker
        sources.append(source)
        targets.append(target)
    return sources, targets


@given(written(), st.integers(1, 7))
def test_every_offset_of_any_history(history: tuple[list[int], list[int]], size: int) -> None:
    """Through the records of the map, written in transactions of any size."""
    sources, targets = history
    found = OffsetMap()
    key, value = start_record(PARTITION, 0, 0, ORIGIN)
    entry = read_entry(key, value)
    assert entry is not None
    assert entry.is_start
    found.begin(entry.runs[0].source, entry.runs[0].target)
    for first in range(0, len(sources), size):
        runs = runs_of(sources[first : first + size], targets[first : first + size])
        for key, value in map_records(PARTITION, runs):
            entry = read_entry(key, value)
            assert entry is not None
            assert entry.partition == PARTITION
            assert not entry.is_start
            found.extend(entry.runs)
    for at in range((sources[-1] if sources else 0) + 3):
        later = [target for source, target in zip(sources, targets, strict=True) if source >= at]
        after = targets[-1] + 1 if targets else 0
        assert found.translate(at) == (later[0] if later else after)


def test_many_runs_are_several_records() -> None:
    runs = [Run(2 * at, at, 1) for at in range(MAX_RUNS + 1)]
    entries = [read_entry(key, value) for key, value in map_records(PARTITION, runs)]
    assert [each for entry in entries if entry for each in entry.runs] == runs
    assert len(entries) == 2


def test_what_is_no_record_of_a_map() -> None:
    begin = start_record(PARTITION, 5, 7, ORIGIN)
    assert read_entry(*begin) == MapEntry(PARTITION, True, (Run(5, 7, 0),), ORIGIN)
    earlier = read_entry(begin[0], b'{"source":5,"target":7}')
    assert earlier == MapEntry(PARTITION, True, (Run(5, 7, 0),), None)
    assert read_entry(begin[0], b'{"source":5,"target":7,"origin":{}}') is None
    assert read_entry(b"x", b"{}") is None
    assert read_entry(b"[]", b"{}") is None
    assert read_entry(b"[" * 5000, b"{}") is None
    assert read_entry(b'{"topic":"t","partition":0,"from":1}', b'{"target":1}') is None
