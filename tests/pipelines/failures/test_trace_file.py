"""Where traces are kept, for whom and how many."""

import stat
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from ottla.pipelines.failures import trace_file
from ottla.pipelines.failures.trace_file import MAX_TRACES, write_trace

NOW = datetime(2026, 11, 22, 4, 10, 15)


def test_a_trace_is_written_for_its_user_alone(tmp_path: Path) -> None:
    file = write_trace({"OTTLA_STATE_DIR": str(tmp_path)}, "a/b c", "the trace", NOW)

    assert file == tmp_path / "traces" / "20261122-041015-a_b_c.txt"
    assert file.read_text() == "the trace"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    again = write_trace({"OTTLA_STATE_DIR": str(tmp_path)}, "a/b c", "another", NOW)
    assert again == tmp_path / "traces" / "20261122-041015-a_b_c-1.txt"


def test_the_newest_traces_stay(tmp_path: Path) -> None:
    environment = {"OTTLA_STATE_DIR": str(tmp_path)}
    files = [
        write_trace(environment, "q", str(n), NOW + timedelta(seconds=n))
        for n in range(MAX_TRACES + 5)
    ]

    assert sorted((tmp_path / "traces").iterdir()) == files[5:]


def test_a_long_trace_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_file, "MAX_TRACE_CHARS", 10)

    file = write_trace({"OTTLA_STATE_DIR": str(tmp_path)}, "q", "x" * 11, NOW)

    assert file is not None
    assert file.read_text() == "x" * 10


def test_without_a_writable_folder_there_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environment = {"OTTLA_STATE_DIR": str(tmp_path / "file")}

    assert write_trace(environment, "q", "text", NOW) is None
