"""Which later record of a key counts when the log is compacted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.log.verification import NOT_REQUIRED
from ottla.records.build import build_batch
from ottla.records.control import ControlType, write_end_marker
from ottla.records.header import iterate_headers
from ottla.records.record import Record
from ottla.tracing.key_search import EVERYTHING
from ottla.tracing.superseding import Superseding, find_superseding

COMMIT, ABORT = ControlType.commit, ControlType.abort


def log_of(folder: Path, written: Sequence[str | tuple[int, str | ControlType]]) -> Log:
    """A key is a record of it; with a producer id it is one of a transaction, or a marker."""
    log = open_log(str(folder), LogConfig(segment_bytes=300), OpenFiles(8), now_ms=1000)
    for each in written:
        producer_id, what = each if isinstance(each, tuple) else (-1, each)
        if isinstance(what, ControlType):
            batch = write_end_marker(what, producer_id, 0, 0, 3_000)
        elif producer_id >= 0:
            batch = build_batch(
                [Record(0, 1000, what.encode(), b"v" * 60)],
                producer_id=producer_id,
                producer_epoch=0,
                is_transactional=True,
            )
        else:
            batch = build_batch([Record(0, 1000, what.encode(), b"v" * 60)])
        headers = list(iterate_headers(batch))
        log.append(batch, headers, leader_epoch=0, now_ms=1000, is_own=True, guard=NOT_REQUIRED)
    return log


async def superseding(log: Log, offset: int = 0, high_watermark: int | None = None) -> Superseding:
    stable = log.last_stable_offset(log.end_offset if high_watermark is None else high_watermark)
    return await find_superseding(log, b"k", offset, stable)


async def test_a_record_outside_transactions_counts(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", ["k", "other", "k", "k"])
    assert await superseding(log) == (2, 2, None)
    assert await superseding(log, 3) == (None, EVERYTHING, None)


async def test_an_aborted_record_does_not_count_and_a_committed_one_does(tmp_path: Path) -> None:
    written: list[Any] = ["k", (7, "k"), (8, "k"), (7, ABORT), (8, COMMIT), (7, "k"), (7, ABORT)]
    log = log_of(tmp_path / "t-0", written)
    assert len(log.segments) > 1
    assert await superseding(log) == (2, 2, None)
    assert await superseding(log, 2) == (None, EVERYTHING, None)


async def test_a_record_of_an_open_transaction_is_undecided(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", ["k", "other", (7, "k")])
    assert await superseding(log) == (None, 2, 2)


async def test_a_record_that_is_not_committed_yet_is_undecided(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", ["k", "k"])
    assert await superseding(log, high_watermark=1) == (None, 1, 1)
    assert await superseding(log, high_watermark=2) == (1, 1, None)


async def test_a_marker_is_no_record_of_a_key(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", [(7, "other"), (7, COMMIT)])
    key = b"\0\0\0\1"  # version 0 and the type of a commit marker
    assert await find_superseding(log, key, 0, 2) == (None, EVERYTHING, None)


async def test_the_search_for_a_marker_has_the_same_limit(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", ["k", (7, "k"), *["other"] * 20, (7, COMMIT)])
    size_bytes = log.segments[0].size_bytes
    assert await find_superseding(log, b"k", 0, log.end_offset, size_bytes) == (None, 1, None)


@pytest.mark.parametrize("kind", [COMMIT, ABORT])
async def test_the_record_itself_may_be_of_a_transaction(tmp_path: Path, kind: ControlType) -> None:
    log = log_of(tmp_path / "t-0", [(7, "k"), (7, kind), "k"])
    assert await superseding(log) == (2, 2, None)
