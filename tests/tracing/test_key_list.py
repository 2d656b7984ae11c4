"""All messages of a key: in which order, and where a limit ends the list."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.records.build import build_batch
from ottla.records.header import iterate_headers
from ottla.records.record import Record
from ottla.tracing import segment_search
from ottla.tracing.key_list import MAX_VALUE_BYTES, list_key


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_search, "WINDOW_BYTES", 500)


def log_of(folder: Path, keys: list[bytes], value: bytes | None = b"v" * 20) -> Log:
    """A log of two records a batch, the second one with another key; some ten batches a segment."""
    config = LogConfig(segment_bytes=1200, index_interval_bytes=0)
    log = open_log(str(folder), config, OpenFiles(8), now_ms=1000)
    for at, key in enumerate(keys):
        batch = build_batch([Record(0, at, key, value), Record(1, at, b"else", b"v")])
        log.append(batch, list(iterate_headers(batch)), leader_epoch=0, now_ms=1000)
    return log


def partition(log: Log, index: int = 0) -> Any:
    return SimpleNamespace(index=index, log=log)


def offsets(said: dict[str, Any]) -> list[tuple[int, int]]:
    return [(one["partition"], one["offset"]) for one in said["messages"]]


async def test_all_of_several_segments_and_partitions(tmp_path: Path) -> None:
    keys = [b"a", b"b", b"c"] * 20
    first, second = log_of(tmp_path / "t-0", keys), log_of(tmp_path / "t-1", [b"b", b"a"])
    assert len(first.segments) > 2
    said = await list_key("t", b"a", [partition(second, 1), partition(first, 0)])
    assert offsets(said) == [(0, at) for at in range(0, 120, 6)] + [(1, 2)]
    assert said["searched"] == [
        {"partition": 0, "down_to_offset": 0, "whole": True, "has_removed": False},
        {"partition": 1, "down_to_offset": 0, "whole": True, "has_removed": False},
    ]
    assert said["messages"][1]["timestamp_ms"] == 3


async def test_the_newest_are_kept_and_the_rest_is_said(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", [b"a", b"b"] * 30)
    for most in range(1, 30):
        said = await list_key("t", b"a", [partition(log)], most=most)
        assert offsets(said) == [(0, at) for at in range(0, 120, 4)][-most:]
        (searched,) = said["searched"]
        assert not searched["whole"]
        # What is listed from there on is everything.
        assert 116 - 4 * most < searched["down_to_offset"] <= 120 - 4 * most
    said = await list_key("t", b"a", [partition(log), partition(log, 1)], most=30)
    assert [one["whole"] for one in said["searched"]] == [True, False]
    assert said["searched"][1]["down_to_offset"] == log.end_offset


async def test_the_budget_ends_the_search(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", [b"a", b"b"] * 30)
    said = await list_key("t", b"a", [partition(log)], budget_bytes=1500)
    (searched,) = said["searched"]
    assert not searched["whole"]
    assert 0 < searched["down_to_offset"] <= said["messages"][0]["offset"]
    assert len(said["messages"]) < 30


async def test_deleted_records_are_not_listed(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", [b"a"] * 40)
    log.advance_start(51)
    said = await list_key("t", b"a", [partition(log)])
    assert offsets(said) == [(0, at) for at in range(52, 80, 2)]
    searched = {"partition": 0, "down_to_offset": 51, "whole": True, "has_removed": True}
    assert said["searched"] == [searched]


async def test_long_values_are_cut_and_tombstones_are_null(tmp_path: Path) -> None:
    long = log_of(tmp_path / "t-0", [b"a"], b"x" * 1000)
    (one,) = (await list_key("t", b"a", [partition(long)]))["messages"]
    assert one["value"] == {"size_bytes": 1000, "cut": True, "text": "x" * MAX_VALUE_BYTES}
    gone = log_of(tmp_path / "t-1", [b"a"], None)
    (one,) = (await list_key("t", b"a", [partition(gone)]))["messages"]
    assert one["value"] is None
