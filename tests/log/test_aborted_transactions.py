"""Which aborted transactions a read_committed fetch learns of, against a list of all of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.log.committed_reader import fetch_committed, read_committed

from ottla.log import names
from ottla.log.aborted_transactions import aborted_transactions, find_work
from ottla.log.flush import flush
from ottla.log.log import Log
from ottla.log.page_cache import NotCachedError
from ottla.log.retention import remove_expired
from ottla.log.truncation import truncate_to
from ottla.records.header import iterate_headers


def _fetch(log: Log, offset: int, max_bytes: int = 700) -> tuple[bytes, list[tuple[int, int]]]:
    found, listed = fetch_committed(log, offset, max_bytes)
    return found, [(each.producer_id, each.first_offset) for each in listed]


def _consume(log: Log, max_bytes: int = 700) -> list[int]:
    return [record.offset for record in read_committed(log, max_bytes)]


def test_a_fetch_lists_the_transactions_that_overlap_it(bench: Any) -> None:
    log = bench.open()
    bench.send(log, 1, 2)  # 0-1
    bench.send(log, 2, 2)  # 2-3
    bench.end(log, 1, commit=False)  # 4
    bench.append(log, 1)  # 5
    bench.end(log, 2, commit=False)  # 6
    assert log.last_stable_offset(7) == 7
    assert _fetch(log, 0)[1] == [(1, 0), (2, 2)]
    assert _fetch(log, 5)[1] == [(2, 2)]
    assert _fetch(log, 7)[1] == []
    assert _consume(log) == [5]


def test_nothing_is_listed_for_what_was_committed(bench: Any) -> None:
    log = bench.open()
    bench.send(log, 1, 2)
    bench.end(log, 1, commit=True)
    assert _fetch(log, 0)[1] == []
    assert bench.names(names.TXN_INDEX) == []
    assert _consume(log) == [0, 1]


def test_the_marker_may_be_segments_after_the_records(bench: Any) -> None:
    log = bench.configure(segment_bytes=700).open()
    bench.send(log, 1, 1)
    bench.fill(log, 20)
    bench.end(log, 1, commit=False)
    assert len(log.segments) > 5
    assert _fetch(log, 0)[1] == [(1, 0)]
    log.close()
    indexed = bench.names(names.TXN_INDEX)
    assert indexed == [names.file_name(log.active.base_offset, names.TXN_INDEX)]
    assert _consume(log) == list(range(1, 61))


def test_a_fetch_of_the_past_lists_nothing_of_later_transactions(bench: Any) -> None:
    log = bench.configure(index_interval_bytes=1).open()
    for _ in range(30):
        bench.send(log, 1, 1)
        bench.end(log, 1, commit=False)
    data, listed = _fetch(log, 0, 300)
    read = sum(1 for _ in iterate_headers(data))
    assert len(listed) <= read // 2 + 2


@pytest.mark.parametrize("how", ["restart", "crash", "flushed"])
def test_the_index_survives(bench: Any, how: str) -> None:
    log = bench.configure(segment_bytes=900).open()
    for number in range(12):
        bench.send(log, number % 3, 2)
        if number % 3 == 2:
            for producer in range(3):
                bench.end(log, producer, commit=producer == 1)
    expected = _consume(log)
    opening = {}
    if how != "crash":
        flush(log)
        opening = {"recovery_point": log.recovery_point}
    if how == "restart":
        log.close()
        opening["clean"] = True
    again = bench.open(**opening)
    assert _consume(again) == expected
    assert [_fetch(again, n)[1] for n in range(again.end_offset)] == [
        _fetch(log, n)[1] for n in range(log.end_offset)
    ]


def test_a_torn_index_is_rebuilt(bench: Any) -> None:
    log = bench.configure(segment_bytes=900).open()
    bench.send(log, 5, 1)
    for _ in range(10):
        bench.send(log, 1, 3)
        bench.end(log, 1, commit=False)
    bench.end(log, 5, commit=False)
    expected = [_fetch(log, n)[1] for n in range(log.end_offset)]
    log.close()
    files = [bench.folder / name for name in bench.names(names.TXN_INDEX)]
    assert len(files) > 2
    before = [file.read_bytes() for file in files]
    for file in files:
        file.write_bytes(file.read_bytes()[:-1])
    again = bench.open(recovery_point=log.end_offset, clean=True)
    assert [_fetch(again, n)[1] for n in range(again.end_offset)] == expected
    again.close()
    assert [file.read_bytes() for file in files] == before


def test_an_append_repairs_a_torn_index_first(bench: Any) -> None:
    log = bench.open()
    for _ in range(3):
        bench.send(log, 1, 1)
        bench.end(log, 1, commit=False)
    log.close()
    path = bench.folder / bench.names(names.TXN_INDEX)[0]
    path.write_bytes(path.read_bytes()[:-7])
    again = bench.open(recovery_point=6, clean=True)
    bench.send(again, 1, 1)
    bench.end(again, 1, commit=False)
    again.close()
    assert path.stat().st_size == 4 * 34


def test_look_ups_may_leave_the_disk_to_a_thread(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.configure(segment_bytes=300).open()
    for _ in range(4):
        bench.send(log, 1, 3)
        bench.end(log, 1, commit=False)

    def uncached(*_: Any) -> bytes:
        raise NotCachedError

    monkeypatch.setattr("ottla.log.aborted_transactions.pread_cached", uncached)
    found = log.read(0, max_bytes=500)
    with pytest.raises(NotCachedError):
        aborted_transactions(log, found, 0, 8, wait=False)
    find_work(log, 0)()
    assert aborted_transactions(log, found, 0, 8)


def test_retention_takes_the_index_along(bench: Any) -> None:
    log = bench.configure(segment_bytes=300, retention_bytes=0, cleanup_delete=True).open()
    for _ in range(6):
        bench.send(log, 1, 3)
        bench.end(log, 1, commit=False)
    log.close()
    removal = remove_expired(log, now_ms=bench.now_ms, high_watermark=log.end_offset)
    assert removal is not None
    removal.run()
    assert len(bench.names(names.TXN_INDEX)) == 0
    assert _consume(log) == []


_STEPS = st.lists(
    st.tuples(st.sampled_from("wwwwcaaptro"), st.integers(1, 4), st.integers(0, 30)), max_size=60
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@example(steps=[("w", 1, 0), ("w", 1, 0), ("t", 1, 1)])
@given(steps=_STEPS)
def test_a_consumer_gets_the_committed_records_and_no_others(
    make_bench: Callable[[str], Any],
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, int, int]],
) -> None:
    """`w`: producer n writes, `c`, `a`: its transaction ends, `p`: a record without transaction,
    `t`: the log is cut, `r`: restart, `o`: crash.
    """
    bench = make_bench(str(tmp_path_factory.mktemp("log") / "t-0"))
    log = bench.configure(segment_bytes=600, index_interval_bytes=100).open()
    history: list[tuple[str, int, int]] = []  # step, producer, offset
    for step, producer, number in steps:
        offset = log.end_offset
        if step == "w":
            bench.send(log, producer)
        elif step in "ca":
            bench.end(log, producer, commit=step == "c")
        elif step == "p":
            bench.append(log, 1)
        else:
            if step == "t":
                truncate_to(log, max(log.end_offset - number, 0), now_ms=1)
                history = [each for each in history if each[2] < log.end_offset]
            else:
                flush(log)
                if step == "r":
                    log.close()
                log = bench.open(recovery_point=log.recovery_point, clean=step == "r")
            continue
        history.append((step, producer, offset))
    expected, open_since = _model(history, log.end_offset)
    assert log.last_stable_offset(log.end_offset) == open_since
    assert _consume(log) == expected
    assert _consume(log, 1) == expected
    assert _consume(log, 10**6) == expected


def _model(history: list[tuple[str, int, int]], end_offset: int) -> tuple[list[int], int]:
    """The committed offsets below the last stable offset, and that offset."""
    open_ones: dict[int, list[int]] = {}
    committed: list[int] = []
    for step, producer, offset in history:
        if step == "w":
            open_ones.setdefault(producer, []).append(offset)
        elif step == "p":
            committed.append(offset)
        else:
            ended = open_ones.pop(producer, [])
            committed += ended if step == "c" else []
    stable = min((each[0] for each in open_ones.values()), default=end_offset)
    return sorted(each for each in committed if each < stable), stable


def test_paths_follow_a_moved_folder(bench: Any, tmp_path: Path) -> None:
    log = bench.open()
    bench.send(log, 1)
    bench.end(log, 1, commit=False)
    moved = str(tmp_path / "moved")
    log.close()
    bench.folder.rename(moved)
    log.deleted(moved)
    assert _fetch(log, 0)[1] == [(1, 0)]
