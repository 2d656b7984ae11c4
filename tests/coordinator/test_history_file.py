"""The file of a partition's histories: what a crash leaves, and its size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.coordinator.history_file import HEAD, MAX_FILE_BYTES, NAME, HistoryFile


def entry(at_ms: int = 0, group: str = "g", size: int = 10) -> dict[str, Any]:
    return {"group": group, "at_ms": at_ms, "padding": "x" * size}


def times(file: HistoryFile) -> list[int]:
    return [each["at_ms"] for each in file.kept.of("g")]


def test_a_restart_keeps_it(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path)
    file.write([entry(1), entry(2)])
    file.write([entry(3)])
    again = HistoryFile(tmp_path)
    assert times(again) == [1, 2, 3]
    again.write([entry(4)])
    assert times(HistoryFile(tmp_path)) == [1, 2, 3, 4]


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_torn_last_line_is_left_out_and_mended(tmp_path: Path, cut: int) -> None:
    HistoryFile(tmp_path).write([entry(1), entry(2)])
    path = tmp_path / NAME
    path.write_bytes(path.read_bytes()[:-cut])
    again = HistoryFile(tmp_path)
    assert times(again) == [1]
    again.write([entry(3)])
    assert times(HistoryFile(tmp_path)) == [1, 3]


def test_a_damaged_line_costs_itself(tmp_path: Path) -> None:
    HistoryFile(tmp_path).write([entry(1), entry(2), entry(3)])
    path = tmp_path / NAME
    data = bytearray(path.read_bytes())
    data[data.index(b'"at_ms":2') + 8] ^= 1
    path.write_bytes(data)
    assert times(HistoryFile(tmp_path)) == [1, 3]


@pytest.mark.parametrize("content", [b"", b"something else\n", HEAD[:-1], b"\0" * 100])
def test_a_file_of_another_kind_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    file = HistoryFile(tmp_path)
    assert times(file) == []
    file.write([entry(1)])
    assert times(HistoryFile(tmp_path)) == [1]


def test_a_noisy_group_does_not_let_the_file_grow(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path)
    file.write([entry(0, "quiet")])
    for at_ms in range(3_000):
        file.write([entry(at_ms, size=1_000)])
        assert (tmp_path / NAME).stat().st_size <= MAX_FILE_BYTES
    again = HistoryFile(tmp_path)
    assert times(again)[-1] == 2_999
    assert len(again.kept.of("quiet")) == 1


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "gone")
    file.write([entry(1)])
    assert times(file) == [1]
    file.moved_to(tmp_path)
    file.write([entry(2)])
    assert times(HistoryFile(tmp_path)) == [1, 2]


def test_a_disk_that_refuses_costs_no_memory_of_it(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path)
    (tmp_path / NAME).mkdir()
    with pytest.raises(OSError):
        file.write([entry(1)])
    assert times(file) == [1]
